package breakerprom_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// listedMetrics returns the names in the table of metrics of the README.
func listedMetrics(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| `(breaker_[a-z_]+)` \\|").FindAllSubmatch(text, -1) {
		names = append(names, string(row[1]))
	}
	return names
}

// exportedMetrics returns the names of all metrics that have a value.
func exportedMetrics(t *testing.T, g prometheus.Gatherer) (names []string) {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, f := range families {
		names = append(names, f.GetName())
	}
	return names
}

// valueOf returns the value of a gauge of one name; false if there is none.
func valueOf(t *testing.T, g prometheus.Gatherer, metric, name string) (float64, bool) {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == metric && m.GetLabel()[0].GetValue() == name {
				return m.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}
