package breaker

import "time"

// grown returns the nominal break of the nth open in a row, first × 2^(n−1), capped at limit. It saturates: no n overflows.
func grown(first, limit time.Duration, n int) time.Duration {
	for d := first; ; d *= 2 {
		if n <= 1 || d >= limit {
			return min(d, limit)
		}
		if d > limit/2 {
			return limit
		}
		n--
	}
}
