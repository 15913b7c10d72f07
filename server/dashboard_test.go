package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
)

// get asks the server's HTTP address for a path.
func get(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + s.HTTPAddr() + path)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// scrape returns the metrics that a server gives: their values by name and labels.
func scrape(t *testing.T, s *Server) map[string]float64 {
	t.Helper()
	code, text := get(t, s, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d", code)
	}
	found := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := cutLast(strings.TrimSpace(line))
		v, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			t.Errorf("a line that is no metric: %q", line)
		}
		found[name] = v
	}
	return found
}

func cutLast(line string) (before, after string, found bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// TestMetrics: what clients do is counted.
func TestMetrics(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", HTTP: "127.0.0.1:0", MaxConnections: 2})
	p := newPeer(t, s)
	p.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}, bson.D{}}))
	p.must("d", cmd("find", "c", "batchSize", 1))
	p.must("d", cmd("find", "c"))
	p.refused("d", cmd("find", "c", "filter", bson.D{{Key: "$x", Value: 1}}))
	p.refused("d", cmd("nonsense", 1), 59)
	p.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}}, "lsid", session(1), "txnNumber", int64(1), "startTransaction", true, "autocommit", false))
	second := newPeer(t, s)
	second.must("admin", cmd("ping", 1))
	newPeer(t, s).ended()
	m := scrape(t, s)
	for name, want := range map[string]float64{
		"pando_connections": 2, "pando_connections_total": 2, "pando_connections_refused_total": 1, "pando_cursors": 1, "pando_cursors_opened_total": 1,
		"pando_sessions": 1, "pando_transactions": 1, "pando_transactions_committed_total": 0, "pando_transactions_aborted_total": 0,
		`pando_commands_total{command="find",outcome="ok"}`: 2, `pando_commands_total{command="find",outcome="failed"}`: 1,
		`pando_commands_total{command="unknown",outcome="failed"}`: 1, `pando_command_seconds_count{command="find"}`: 3,
		`pando_command_seconds_bucket{command="find",le="+Inf"}`: 3,
	} {
		if got, there := m[name]; got != want || !there {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"pando_bytes_in_total", "pando_bytes_out_total", "pando_storage_commits_total", "pando_storage_last_seq"} {
		if m[name] <= 0 {
			t.Errorf("%s is %v", name, m[name])
		}
	}
	last := 0.0
	for us := 1; us < 1<<25; us <<= 1 { // a histogram grows
		v, there := m[`pando_command_seconds_bucket{command="find",le="`+strconv.FormatFloat(float64(us)/1e6, 'g', -1, 64)+`"}`]
		if !there || v < last {
			t.Errorf("the bucket of %d microseconds holds %v, the one before %v", us, v, last)
		}
		last = v
	}
}

// TestMetricsOfTheStorage: what the storage counts is exported, all of it but the profile, which is no number.
func TestMetricsOfTheStorage(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", HTTP: "127.0.0.1:0"})
	newPeer(t, s).must("d", cmd("insert", "c", "documents", bson.A{bson.D{}}))
	exported := 0
	for name := range scrape(t, s) {
		if strings.HasPrefix(name, "pando_storage_") {
			exported++
		}
	}
	if counted := reflect.TypeFor[pando.Metrics]().NumField() - 1; exported != counted {
		t.Errorf("%d numbers are exported, of %d", exported, counted)
	}
}

// TestDashboard: the dashboard shows what the server exports: nothing else, and all of it.
func TestDashboard(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", HTTP: "127.0.0.1:0"})
	newPeer(t, s).must("admin", cmd("ping", 1))
	exported := map[string]bool{}
	for name := range scrape(t, s) {
		name, _, _ = strings.Cut(name, "{")
		exported[name] = true
	}
	text, err := os.ReadFile("../dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\bpando_\w+`)
	shown := map[string]bool{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			names := metric.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s: %s names no metric", p.Title, target.Expr)
			}
			for _, name := range names {
				if shown[name] = true; !exported[name] {
					t.Errorf("%s shows %s, which does not exist", p.Title, name)
				}
			}
		}
	}
	for name := range exported {
		if !shown[name] {
			t.Errorf("%s is not shown", name)
		}
	}
}
