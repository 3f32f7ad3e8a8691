package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"flag"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// write puts a file into the test's directory and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func parsed(t *testing.T, args ...string) scenario {
	t.Helper()
	s, _, err := parse(args, io.Discard)
	require.NoError(t, err)
	return s
}

func TestFlags(t *testing.T) {
	s, out, err := parse([]string{
		"-p50", "20ms", "-p99", "90ms", "-failure-rate", "0.01", "-capacity", "30", "-warmup", "15s", "-per-second", "75",
		"-breakers", "4", "-timeout", "2s", "-duration", "3m", "-seed", "9", "-out", "a/b",
		"-incident", "30s+20s,slower=4,failing=0.3", "-incident", "1m+10s,failing=1", "-incident", "2m+1s",
		"-settings", `{"name": "one", "break_duration": "5s"}`, "-compare", `{"recovery": {"fraction": 0.5}}`,
	}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "a/b", out)
	assert.Equal(t, breaker.Simulation{
		Settings: breaker.Settings{Name: "one", BreakDuration: 5 * time.Second},
		Dependency: breaker.Dependency{
			P50: 20 * time.Millisecond, P99: 90 * time.Millisecond, FailureRate: 0.01, Capacity: 30, Warmup: 15 * time.Second,
			Incidents: []breaker.Incident{
				{After: 30 * time.Second, For: 20 * time.Second, Slower: 4, Failing: 0.3},
				{After: time.Minute, For: 10 * time.Second, Failing: 1},
				{After: 2 * time.Minute, For: time.Second},
			},
		},
		Load: breaker.Load{PerSecond: 75}, Breakers: 4, Timeout: 2 * time.Second, Duration: 3 * time.Minute, Seed: 9,
	}, s.simulation(s.Settings))
	assert.Equal(t, []breaker.Settings{
		{Name: "one", BreakDuration: 5 * time.Second}, {Recovery: breaker.Recovery{Fraction: 0.5}},
	}, s.settings())
}

func TestFlagsAfterTheFileReplaceIt(t *testing.T) {
	file := write(t, `{"settings": {"name": "file"}, "load": {"per_second": 5}, "seed": 3, "dependency": {"p50": "1s"}}`)
	s := parsed(t, "-per-second", "6", "-scenario", file, "-seed", "4")
	assert.Equal(t, 5.0, s.Load.PerSecond, "the file comes later")
	assert.EqualValues(t, 4, s.Seed, "the flag comes later")
	assert.Equal(t, "file", s.Settings.Name)
	assert.Equal(t, duration(time.Second), s.Dependency.P50)
	assert.Equal(t, duration(2*time.Minute), s.Duration, "what neither says keeps its default")
}

func TestSettingsComeFromAFileAsWell(t *testing.T) {
	file := write(t, `{"name": "in a file"}`)
	s := parsed(t, "-settings", file, "-compare", file)
	assert.Equal(t, "in a file", s.Settings.Name)
	assert.Equal(t, "in a file", s.Compare.Name)
}

// The file in the help is one that can be run, and it shows every key there is.
func TestHelpDocumentsEveryKey(t *testing.T) {
	var printed bytes.Buffer
	require.ErrorIs(t, run(t.Context(), []string{"-help"}, io.Discard, &printed), flag.ErrHelp)
	start := strings.Index(printed.String(), "\n\t{\n")
	end := strings.Index(printed.String(), "\n\t}\n")
	require.Positive(t, start)
	example := printed.String()[start : end+4]
	s := parsed(t, "-scenario", write(t, example))
	assert.Equal(t, duration(50*time.Millisecond), s.Dependency.P99)
	require.Len(t, keysOf(reflect.TypeFor[scenario]()), 19)
	for _, key := range keysOf(reflect.TypeFor[scenario]()) {
		assert.Contains(t, example, `"`+key+`"`)
	}
	assert.Contains(t, printed.String(), "-incident")
}

// What the help says of settings within settings can be written as it stands there.
func TestHelpDocumentsNestedSettings(t *testing.T) {
	const written = `"failures": {"false_alarm_every": "720h"}, "slow_calls": {"tail_quantile": 0.75, "ended_only": true}`
	require.Contains(t, help, written)
	s := parsed(t, "-settings", "{"+written+"}").Settings
	assert.Equal(t, breaker.Failures{FalseAlarmEvery: 720 * time.Hour}, s.Failures)
	assert.Equal(t, breaker.SlowCalls{TailQuantile: 0.75, EndedOnly: true}, s.SlowCalls)
	assert.NoError(t, s.Validate())
}

// keysOf returns the JSON keys of a type of this package.
func keysOf(of reflect.Type) (keys []string) {
	switch {
	case of.Kind() == reflect.Slice:
		return keysOf(of.Elem())
	case of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[scenario]().PkgPath():
		return nil
	}
	for i := range of.NumField() {
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		keys = append(append(keys, key), keysOf(of.Field(i).Type)...)
	}
	return keys
}

func TestMistakesAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":            {[]string{"-p51", "1s"}, "-p51"},
		"stray argument":          {[]string{"now"}, `"now" is no flag`},
		"bad duration":            {[]string{"-p50", "1 parsec"}, "p50"},
		"no such file":            {[]string{"-scenario", "nowhere.json"}, "nowhere.json"},
		"unknown key":             {[]string{"-scenario", write(t, `{"breaker": 3}`)}, `"breaker"`},
		"unknown inner key":       {[]string{"-scenario", write(t, `{"dependency": {"incidents": [{"fails": 1}]}}`)}, `"fails"`},
		"unknown setting":         {[]string{"-settings", `{"brake_duration": "5s"}`}, `brake_duration`},
		"unknown in the file":     {[]string{"-scenario", write(t, `{"settings": {"brake_duration": "5s"}}`)}, `brake_duration`},
		"a second value":          {[]string{"-settings", `{} {}`}, "more follows"},
		"a number for a time":     {[]string{"-scenario", write(t, `{"duration": 5}`)}, "duration"},
		"incident without +":      {[]string{"-incident", "30s,failing=1"}, "after+for"},
		"incident at no time":     {[]string{"-incident", "soon+20s"}, "soon"},
		"incident of no length":   {[]string{"-incident", "20s+long"}, "long"},
		"incident of what":        {[]string{"-incident", "1s+1s,broken=1"}, `"broken"`},
		"incident without number": {[]string{"-incident", "1s+1s,slower=much"}, "much"},
		"impossible model":        {[]string{"-per-second", "-1"}, "Load.PerSecond is -1"},
		"impossible settings":     {[]string{"-settings", `{"failure_ratio": 2}`}, "Settings.FailureRatio is 2"},
		"impossible comparison":   {[]string{"-compare", `{"failure_ratio": 3}`}, "Settings.FailureRatio is 3"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "picture")
			err := run(t.Context(), append([]string{"-out", out, "-duration", "1s"}, tt.args...), io.Discard, io.Discard)
			require.ErrorContains(t, err, tt.says)
			assert.NoFileExists(t, out+".svg")
		})
	}
}

func TestRunPrintsAndDraws(t *testing.T) {
	args := []string{"-duration", "20500ms", "-incident", "5s+5s,failing=1", "-incident", "1h+1s", "-per-second", "20"}
	for name, tt := range map[string]struct {
		args   []string
		blocks []string
	}{
		"one":     {nil, []string{"settings"}},
		"two":     {[]string{"-compare", "{}"}, []string{"settings", "compare"}},
		"by name": {[]string{"-settings", `{"name": "a"}`, "-compare", `{"name": "b"}`}, []string{"a", "b"}},
		"warm-up": {[]string{"-capacity", "10", "-warmup", "5s"}, []string{"settings"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "new", "picture")
			var stdout, stderr bytes.Buffer
			require.NoError(t, run(t.Context(), append(append(args, tt.args...), "-out", out), &stdout, &stderr))
			blocks := strings.Split(stdout.String(), "\n\n")
			require.Len(t, blocks, len(tt.blocks))
			for i, block := range blocks {
				assert.True(t, strings.HasPrefix(block, tt.blocks[i]+"\ncalls "), block)
			}
			assert.Empty(t, stderr.String(), "a short run shows no progress")
			aspect := checkPNG(t, out+".png")
			assert.InDelta(t, float64(len(tt.blocks))*columnWidth.Points()+legendWidth.Points(), aspect*figureHeight.Points(), 2)
			checkSVG(t, out+".svg", append(tt.blocks, "calls a second", "seconds", "refused", "half-open", "of slowness")...)
		})
	}
}

// checkPNG decodes a picture and returns its width over its height.
func checkPNG(t *testing.T, file string) float64 {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	return float64(img.Bounds().Dx()) / float64(img.Bounds().Dy())
}

// checkSVG finds texts among those of a picture.
func checkSVG(t *testing.T, file string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var found []string
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if data, ok := token.(xml.CharData); ok {
			found = append(found, strings.TrimSpace(string(data)))
		}
	}
	assert.Subset(t, found, want)
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := filepath.Join(t.TempDir(), "picture")
	require.ErrorIs(t, run(ctx, []string{"-out", out}, io.Discard, io.Discard), context.Canceled)
	assert.NoFileExists(t, out+".png")
}

func TestRunFailsWhereItCannotWrite(t *testing.T) {
	file := write(t, "")
	require.Error(t, run(t.Context(), []string{"-duration", "1s", "-out", filepath.Join(file, "picture")}, io.Discard, io.Discard))
}

func TestProgressOfALongRun(t *testing.T) {
	var to bytes.Buffer
	p := newProgress(&to, "name", time.Hour)
	p.sample(breaker.Sample{})
	p.done()
	assert.Empty(t, to.String(), "nobody wonders yet")
	p.told = p.told.Add(-progressEvery)
	p.sample(breaker.Sample{At: time.Minute, State: breaker.Open})
	p.sample(breaker.Sample{At: 2 * time.Minute})
	p.done()
	assert.Equal(t, "\rname: 1m0s of 1h0m0s simulated, open\n", to.String())
}

func TestTicks(t *testing.T) {
	for to, want := range map[float64]string{
		1: "0 1", 10: "0 1 2 3 4 5 6 7 8 9 10", 11: "0 2 4 6 8 10", 90: "0 10 20 30 40 50 60 70 80 90", 120: "0 20 40 60 80 100 120",
		300: "0 50 100 150 200 250 300", 86400: "0 10000 20000 30000 40000 50000 60000 70000 80000",
	} {
		var labels []string
		for _, tick := range ticks(0, to) {
			if !tick.IsMinor() {
				labels = append(labels, tick.Label)
			}
		}
		assert.Equal(t, want, strings.Join(labels, " "))
	}
}

var update = flag.Bool("update", false, "write what the commands of the pages print and draw")

// documented matches a command of the page with what it printed.
var documented = regexp.MustCompile("(?s)(```console\n\\$ go run \\. (.*?) -out ../../docs/(.*?)\n)(.*?)```")

// What the pages show is what their commands print and draw.
func TestDocumentation(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("floating point differs between architectures")
	}
	for _, page := range []string{"../../docs/simulation.md", "../../docs/incidents.md"} {
		t.Run(filepath.Base(page), func(t *testing.T) { checkPage(t, page) })
	}
}

func checkPage(t *testing.T, page string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	blocks := documented.FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(blocks), 3, "commands on the page")
	for _, block := range blocks {
		whole, command, arguments, picture, want := block[0], block[1], block[2], block[3], block[4]
		t.Run(picture, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "picture")
			var stdout bytes.Buffer
			require.NoError(t, run(t.Context(), append(strings.Fields(arguments), "-out", out), &stdout, io.Discard))
			if *update {
				text = bytes.Replace(text, []byte(whole), []byte(command+stdout.String()+"```"), 1)
			} else {
				assert.Equal(t, want, stdout.String())
			}
			for _, ending := range []string{".svg", ".png"} {
				assert.Contains(t, string(text), picture+ending, "the page shows it")
				checkPicture(t, out+ending, filepath.Join(filepath.Dir(page), picture+ending))
			}
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(page, text, 0o644))
	}
}

// checkPicture compares two pictures, or updates the one in the documentation.
func checkPicture(t *testing.T, drawn, shown string) {
	t.Helper()
	got, err := os.ReadFile(drawn)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(shown, got, 0o644))
	}
	want, err := os.ReadFile(shown)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "%s is not what its command draws", shown)
}
