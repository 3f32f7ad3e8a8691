package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// short is back after three seconds and watched for six.
var short = scenario{healthy: time.Second, brownout: time.Second, failing: time.Second, restarted: 6 * time.Second}

// everySecond returns one result in the middle of each second.
func everySecond(took time.Duration, outcomes ...outcome) []result {
	results := make([]result, len(outcomes))
	for i, o := range outcomes {
		results[i] = result{at: time.Duration(i)*time.Second + time.Second/2, took: took, outcome: o}
	}
	return results
}

func TestReport(t *testing.T) {
	got := newReport(short, everySecond(time.Second, ok, ok, failed, refused, failed, ok, refused, ok, ok))
	assert.Equal(t, report{
		requests: 9, served: 5, refused: 2, failed: 2,
		recovery: 2 * time.Second, recovered: true,
		lastServed: 3, lastOffered: 5,
	}, got)
	assert.Equal(t, 3, newReport(short, everySecond(time.Second+1, ok, failed, refused)).waited)
}

func TestRecovery(t *testing.T) {
	for _, c := range []struct {
		name      string
		results   []result
		want      time.Duration
		recovered bool
	}{
		{"at once", everySecond(0, ok, ok, failed, ok), 0, true},
		{"served while failing does not count", everySecond(0, ok, ok, ok, failed, failed, failed, failed, failed, failed), 0, false},
		{"a second without requests is none", everySecond(0, ok, ok, failed), 0, false},
		{"a second with one refusal is none", append(everySecond(0, ok, ok, failed, ok, ok),
			result{at: 3100 * time.Millisecond, outcome: refused}), time.Second, true},
		{"in the last second", everySecond(0, ok, ok, failed, failed, failed, failed, failed, failed, ok), 5 * time.Second, true},
		{"after the end", everySecond(0, ok, ok, failed, failed, failed, failed, failed, failed, failed, ok), 0, false},
	} {
		took, recovered := recovery(short, c.results)
		assert.Equal(t, c.recovered, recovered, c.name)
		assert.Equal(t, c.want, took, c.name)
	}
}

func TestCompare(t *testing.T) {
	var out strings.Builder
	with := everySecond(time.Millisecond, ok, refused, failed, refused, ok, ok, ok, ok, ok)
	without := everySecond(2*time.Second, ok, ok, failed, failed, failed, failed, failed, failed, failed)
	compare(&out, short, with, without)
	assert.Equal(t, `
The same scenario                               with breaker  without breaker
requests                                                   9                9
served                                                     6                2
refused at once                                            2                0
errors                                                     1                7
waited over a second                                       0                9
served in the last 5 seconds                          5 of 5           0 of 5
server back until it served everything again              1s            never
`, out.String())
}
