// Package breakerprom exports the circuit breakers of a [breaker.Monitor] to Prometheus.
//
//	prometheus.MustRegister(breakerprom.NewCollector(&monitor))
//
// The collector reads every breaker when it is scraped; between scrapes it only counts changes of state. The README lists the
// metrics; dashboard.json is a Grafana dashboard of them, and alerts.yml are alert rules.
package breakerprom
