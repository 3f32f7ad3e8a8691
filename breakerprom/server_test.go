package breakerprom_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	patience = 30 * time.Second       // with a server on a busy machine
	interval = 100 * time.Millisecond // of scrapes, of evaluations, and of looking for their effect
)

// server is a Prometheus server that scrapes one target and evaluates the alert rules.
type server struct {
	url string
	t   *testing.T
}

// startServer starts a server, which ends with the test.
func startServer(t *testing.T, target string) server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("alerts.yml")
	require.NoError(t, err)
	config := fmt.Sprintf(`
global: {scrape_interval: 100ms, scrape_timeout: 100ms, evaluation_interval: 100ms}
rule_files: [%q]
scrape_configs: [{job_name: shop, static_configs: [{targets: [%q]}]}]
`, rules, target)
	path := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	command := exec.CommandContext(t.Context(), program(t, "prometheus"),
		"--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	log, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	address := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		findAddress(log, address)
	}()
	t.Cleanup(func() { // the context of the test is done by now, so the server is asked to end
		<-drained
		_ = command.Wait()
	})
	select {
	case a := <-address:
		return server{"http://" + a, t}
	case <-drained:
		require.Fail(t, "the server ended")
	case <-time.After(patience):
		require.Fail(t, "the server does not listen")
	}
	return server{}
}

// findAddress reads the log to its end and sends the address that it names.
func findAddress(log io.Reader, address chan<- string) {
	listening := regexp.MustCompile(`Listening on" address=(\S+)`)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			address <- match[1]
		}
	}
}

// get decodes the data of an answer of the server's interface; false if it has none.
func (s server) get(path string, data any) bool {
	response, err := http.Get(s.url + path)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	answer := struct{ Data any }{data}
	return json.NewDecoder(response.Body).Decode(&answer) == nil && response.StatusCode == http.StatusOK
}

// sample is a series in the answer to a query.
type sample struct {
	Metric map[string]string
	Value  [2]any // time, number as text
}

func (s server) query(expr string) (samples []sample) {
	var data struct{ Result []sample }
	s.get("/api/v1/query?query="+url.QueryEscape(expr), &data)
	return data.Result
}

// eventually waits until a query is answered with a number of series.
func (s server) eventually(expr string, want int) []sample {
	s.t.Helper()
	var samples []sample
	require.Eventually(s.t, func() bool {
		samples = s.query(expr)
		return len(samples) == want
	}, patience, interval, "%s", expr)
	return samples
}

// A real server scrapes the collector, evaluates every alert rule and answers every query of the dashboard.
func TestPrometheusServer(t *testing.T) {
	f := newFleet(t)
	endpoint := httptest.NewServer(promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{}))
	defer endpoint.Close()
	s := startServer(t, strings.TrimPrefix(endpoint.URL, "http://"))

	s.eventually("breaker_state", 5*5)
	for _, sample := range s.eventually("breaker_state == 1", 5) {
		assert.Equal(t, sample.Metric["name"], sample.Metric["state"], "the breakers are named for their states")
	}
	assert.Equal(t, "2", s.eventually(`breaker_calls_total{name="closed", outcome="transient"}`, 1)[0].Value[1])
	var names []string
	require.True(t, s.get("/api/v1/label/__name__/values?match[]="+url.QueryEscape(`{job="shop",__name__=~"breaker_.*"}`), &names))
	assert.ElementsMatch(t, listedMetrics(t), names)
	checkRules(t, s)
	checkDashboard(t, s)
	runtime.KeepAlive(f)
}

// checkRules waits until every alert rule has been evaluated, and looks for the alerts that are due: after the time that they are
// set to wait they would fire.
func checkRules(t *testing.T, s server) {
	t.Helper()
	type rule struct{ Name, Health, LastError, State string }
	states := map[string]string{}
	require.Eventually(t, func() bool {
		var data struct{ Groups []struct{ Rules []rule } }
		if !s.get("/api/v1/rules", &data) || len(data.Groups) != 1 {
			return false
		}
		for _, r := range data.Groups[0].Rules {
			states[r.Name] = r.State
			if r.Health != "ok" {
				return false
			}
		}
		return states["BreakerIsolated"] == "pending"
	}, patience, interval)
	assert.Len(t, states, 8)
	assert.Equal(t, "inactive", states["BreakerNamesBeyondLimit"])
}

// checkDashboard waits until every query of the dashboard has an answer.
func checkDashboard(t *testing.T, s server) {
	t.Helper()
	for panel, queries := range dashboard(t).queries() {
		for _, query := range queries {
			assert.Eventually(t, func() bool { return len(s.query(query)) > 0 }, patience, interval, "%s: %s", panel, query)
		}
	}
	for _, sample := range s.eventually(dashboard(t).queries()["Worst state"][0], 5) {
		severity := map[string]string{"closed": "0", "recovering": "1", "half-open": "2", "open": "3", "isolated": "4"}
		assert.Equal(t, severity[sample.Metric["name"]], sample.Value[1], sample.Metric["name"])
	}
}
