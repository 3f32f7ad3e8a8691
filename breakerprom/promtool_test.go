package breakerprom_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program returns the path of a program of Debian's package prometheus. Without it the test is skipped, and fails in CI.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	const remedy = "%s is not installed: apt-get install prometheus"
	if os.Getenv("CI") == "true" {
		require.Failf(t, "a program is missing", remedy, name)
	}
	t.Skipf(remedy, name)
	return ""
}

func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program(t, "promtool"), arguments...).CombinedOutput()
	assert.NoError(t, err, "promtool %v\n%s", arguments, output)
}

func TestAlertRules(t *testing.T) {
	promtool(t, "check", "rules", "alerts.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
}

// Every alert has a test in which it fires, by its name and with what it says.
func TestEveryAlertIsTested(t *testing.T) {
	rules, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	tests, err := os.ReadFile("alerts_test.yml")
	require.NoError(t, err)
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	require.NotEmpty(t, alerts)
	for _, alert := range alerts {
		assert.Regexp(t, `alertname: `+alert[1]+`\n +exp_alerts:\n`, string(tests))
	}
}

// board is the part of a Grafana dashboard that can be wrong without Grafana.
type board struct {
	Title, UID string
	Panels     []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

func dashboard(t *testing.T) (b board) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &b))
	return b
}

// queries returns the queries of the dashboard with All chosen for every variable, by panel.
func (b board) queries() (panels map[string][]string) {
	panels = map[string][]string{}
	chosen := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*", "$name", ".*")
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			panels[p.Title] = append(panels[p.Title], chosen.Replace(target.Expr))
		}
	}
	return panels
}

var metricName = regexp.MustCompile(`\bbreaker_\w+`)

// The dashboard shows every metric there is and none else, panels have ids of their own, and none lies on another.
func TestDashboardIsWhole(t *testing.T) {
	b := dashboard(t)
	require.NotEmpty(t, b.Panels)
	shown, ids, cells := map[string]bool{}, map[int]bool{}, map[[2]int]bool{}
	for _, p := range b.Panels {
		assert.False(t, ids[p.ID], "panel %q has the id of another", p.Title)
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.False(t, cells[cell], "panel %q lies on another at %v", p.Title, cell)
				assert.Less(t, cell[0], 24, "panel %q", p.Title)
				cells[cell] = true
			}
		}
	}
	for panel, queries := range b.queries() {
		for _, query := range queries {
			assert.NotContains(t, query, "$", "panel %q has a variable that is not there", panel)
			for _, name := range metricName.FindAllString(query, -1) {
				shown[name] = true
			}
		}
	}
	var names []string
	for name := range shown {
		names = append(names, name)
	}
	assert.ElementsMatch(t, listedMetrics(t), names)
}

func TestDashboardQueriesAreWellFormed(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, queries := range dashboard(t).queries() {
		for _, query := range queries {
			rules = append(rules, rule{"a:query", query})
		}
	}
	require.NotEmpty(t, rules)
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dashboard.yml") // JSON is YAML
	require.NoError(t, os.WriteFile(path, text, 0o600))
	promtool(t, "check", "rules", "--lint=none", path)
}
