package model

import "time"

// The numbers of the rules that no setting holds, as the breaker has them.
const (
	priorCalls    = 20   // that a baseline is taken to have seen before the first
	priorFailures = 0.02 // of them
	priorSlow     = 0.05
	slowMultiple  = 5 // of the normal share of slow calls is abnormal

	slice        = 250 * time.Millisecond // what ends within it is one event
	failureShare = 0.5                    // of the limit, that one event can bring
	slowShare    = 0.34
	mostUnknown  = 0.3 // share of bad calls that streaks are judged by while there are few calls
	numbersServe = 500 // calls of a bucket, and a quarter of it
	leastAlarm   = 1e6 // calls between false alarms
	rateOver     = 30 * time.Second
	careful      = 0.95 // the most that p0 can be
	rounding     = 1e-9 // of the limit

	streakLasts = 250 * time.Millisecond
	busyRate    = 10 // calls a second
	busyExtra   = 9

	probeShare     = 0.04 // of the calls
	breakShare     = 0.1  // of the incident
	leastFirst     = 1500 * time.Millisecond
	mostFirst      = 10 * time.Second
	leastAgain     = 500 * time.Millisecond // after an incident that was short
	remembered     = time.Hour
	breakRateCalls = 20 // that the buckets before the present one must have
	breakRateOver  = time.Second

	probeLatencies = 10 // that a probe may take
	probeTakes     = time.Second

	rampDoubles  = 100 * time.Millisecond
	rampLatency  = 3 // latencies that the fraction takes to double
	rampSlowest  = 2 * time.Second
	rampCut      = 0.35 // of the fraction is left by a cut
	rampStep     = 1.0 / 1024
	rampBears    = 1.5 // times the share of bad calls at the start
	rampStart    = 1.5 // times the initial fraction is the start still
	rampLastCut  = 3
	overdueTenth = 10      // of the threshold, is the widest slot
	narrowest    = 1 << 20 // nanoseconds, of a slot
	overdueSlots = 28      // that the threshold may span
)
