package drivers

import (
	"bufio"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// packages are what PyMongo's tests need, with what they need in turn.
var packages = []string{
	"pymongo==4.20.0", "dnspython==2.9.2", "pytest==9.2.0", "pytest-asyncio==1.5.0", "iniconfig==2.3.1", "packaging==26.3",
	"pluggy==1.7.0", "Pygments==2.21.0", "typing_extensions==4.16.0",
}

// group is modules of PyMongo's tests that run against one server. The groups run side by side. The asynchronous client's modules
// run the same cases, and are left out.
type group struct {
	name    string
	modules []string
	flags   []string // of the server
	auth    bool     // the server wants a login, and pytest is to choose the cases about that
	without []string // cases that are not run
}

// specified are the specifications' unified cases, known_failures.txt has those that fail.
var specified = []group{
	{name: "operations", modules: []string{
		"test_crud_unified", "test_collection_management", "test_index_management", "test_run_command", "test_gridfs_spec",
		"test_read_write_concern_spec", "test_causal_consistency", "test_sessions_unified",
	}},
	{name: "faults", modules: []string{
		"test_retryable_reads_unified", "test_retryable_writes_unified", "test_versioned_api_integration", "test_command_logging",
		"test_command_monitoring",
	}},
	{name: "transactions", modules: []string{"test_transactions_unified"}},
	{name: "streams", modules: []string{"test_change_stream"}},
}

// own are PyMongo's own cases, own_failures.txt has those that fail.
var own = []group{
	{name: "own collections", modules: []string{
		"test_collection", "test_database", "test_collation", "test_custom_types", "test_comment", "test_raw_bson", "test_dbref",
		"test_examples", "test_json_util_integration", "test_read_concern",
	}},
	{name: "own cursors", modules: []string{
		"test_cursor", "test_bulk", "test_client_bulk_write", "test_monitoring", "test_grid_file", "test_gridfs", "test_gridfs_bucket",
	}},
	{name: "own sessions", modules: []string{"test_session", "test_transactions", "test_retryable_reads", "test_retryable_writes"},
		// It wants a server on port 27017 and none other.
		without: []string{"test/test_retryable_writes.py::TestErrorPropagationAfterEncounteringMultipleErrors"}},
	{name: "own logins", modules: []string{"test_auth", "test_auth_spec"}, flags: []string{"--auth"}, auth: true},
}

// TestPyMongo runs the drivers' unified specification tests and PyMongo's own, and compares what fails with what is known to fail,
// both ways.
func TestPyMongo(t *testing.T) {
	need(t, "python3")
	t.Parallel()
	dir := t.TempDir()
	python := filepath.Join(dir, "venv", "bin", "python")
	must(t, dir, 3*time.Minute, "python3", "-m", "venv", "venv")
	fetched(t, dir, python, append([]string{"-m", "pip", "install", "-q", "--retries", "8"}, packages...)...)
	fetched(t, dir, python, "-m", "pip", "download", "-q", "--retries", "8", "--no-deps", "--no-binary", "pymongo", packages[0])
	must(t, dir, 3*time.Minute, "tar", "xzf", "pymongo-4.20.0.tar.gz")
	reports := make(map[string]report)
	var mu sync.Mutex
	t.Run("groups", func(t *testing.T) {
		for _, g := range slices.Concat(specified, own) {
			t.Run(g.name, func(t *testing.T) {
				t.Parallel()
				r := g.run(t, dir, python)
				mu.Lock()
				defer mu.Unlock()
				reports[g.name] = r
			})
		}
	})
	for file, groups := range map[string][]group{"known_failures.txt": specified, "own_failures.txt": own} {
		known := knownFailures(t, file)
		for _, g := range groups {
			t.Run(g.name, func(t *testing.T) {
				r := reports[g.name]
				g.repeat(t, dir, python, r.outcome, known)
				if passed := compare(t, r.outcome, known, file, g.modules); passed < 20 {
					t.Errorf("only %d cases passed: the runner does not see the server as it is", passed)
				}
				if t.Failed() {
					t.Log(last(r.output, 20_000))
				}
			})
		}
	}
}

// repeat runs cases that failed beside those of other groups again, when these have ended, and takes their outcome then. Cases give a
// server as little as 100 ms to answer, and a commit that is to survive a power cut waits for a disk that six servers share. Whoever
// fails alone too has failed; many that fail have a common reason, which is not the disk.
func (g *group) repeat(t *testing.T, dir, python string, outcome, known map[string]string) {
	var failed []string
	for name, how := range outcome {
		if _, listed := known[name]; how == "failed" && !listed {
			failed = append(failed, name)
		}
	}
	if len(failed) == 0 || len(failed) > 3 {
		return
	}
	alone := g.run(t, dir, python, failed...)
	for name, how := range alone.outcome {
		t.Logf("%s failed beside other groups, and alone: %s", name, how)
		outcome[name] = how
	}
}

// report is what a run of pytest said.
type report struct {
	outcome map[string]string // by module.class.case: passed, failed or skipped
	output  string
}

// run runs the modules, or some of their cases only.
func (g *group) run(t *testing.T, dir, python string, cases ...string) report {
	source := filepath.Join(dir, "pymongo-4.20.0")
	run := t.TempDir()
	// Neither the sources of the package nor its build script may be found before what is installed.
	for _, part := range []string{"test", "tools"} {
		if err := os.CopyFS(filepath.Join(run, part), os.DirFS(filepath.Join(source, part))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(source, "pyproject.toml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(run, "pyproject.toml"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, append([]string{"--test-commands"}, g.flags...)...)
	host, port, _ := strings.Cut(addr, ":")
	file := filepath.Join(run, "report.xml")
	args := []string{"-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--junitxml=" + file}
	if g.auth {
		connect(t, addr).run("admin", d("createUser", "user", "pwd", "password", "roles", bson.A{"root"}))
		args = append(args, "-m", "auth")
	}
	args = append(args, g.selection(cases)...)
	env := []string{"DB_IP=" + host, "DB_PORT=" + port, "DB_USER=user", "DB_PASSWORD=password"}
	out, runErr := do(t, run, 12*time.Minute, env, python, args...)
	outcome, err := readReport(file)
	if err != nil {
		t.Fatalf("pytest left no report: %v, %v\n%s", err, runErr, last(out, 4000))
	}
	if len(outcome) == 0 {
		t.Fatal("pytest ran no case")
	}
	return report{outcome: outcome, output: out}
}

// selection names what pytest is to run: all modules, or cases as module.class.case.
func (g *group) selection(cases []string) (args []string) {
	for _, c := range cases {
		parts := strings.SplitN(c, ".", 3)
		args = append(args, filepath.Join("test", parts[0]+".py")+"::"+strings.Join(parts[1:], "::"))
	}
	if len(cases) > 0 {
		return args
	}
	for _, c := range g.without {
		args = append(args, "--deselect", c)
	}
	for _, m := range g.modules {
		args = append(args, filepath.Join("test", m+".py"))
	}
	return args
}

// readReport reads what pytest wrote as JUnit's XML.
func readReport(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var report struct {
		Cases []struct {
			Class   string     `xml:"classname,attr"`
			Name    string     `xml:"name,attr"`
			Failure []struct{} `xml:"failure"`
			Error   []struct{} `xml:"error"`
			Skipped []struct{} `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	outcome := map[string]string{}
	for _, c := range report.Cases {
		// A case's class comes as test.module.Class; a case whose teardown failed too is there twice.
		name := strings.TrimPrefix(c.Class, "test.") + "." + c.Name
		switch {
		case len(c.Failure)+len(c.Error) > 0:
			outcome[name] = "failed"
		case outcome[name] == "failed":
		case len(c.Skipped) > 0:
			outcome[name] = "skipped"
		default:
			outcome[name] = "passed"
		}
	}
	return outcome, nil
}

// compare fails the test for every case that fails and is not known, and for every known one that no longer fails.
func compare(t *testing.T, outcome map[string]string, known map[string]string, file string, list []string) (passed int) {
	var skipped, failed int
	for name, how := range outcome {
		_, listed := known[name]
		switch how {
		case "passed":
			passed++
			if listed {
				t.Errorf("%s passes: take it off %s", name, file)
			}
		case "failed":
			failed++
			if !listed {
				t.Errorf("%s fails, and is not in %s", name, file)
			}
		default:
			skipped++
		}
	}
	for name := range known {
		module, _, _ := strings.Cut(name, ".")
		if how := outcome[name]; slices.Contains(list, module) && how != "passed" && how != "failed" {
			t.Errorf("%s is in %s, and did not run (%s)", name, file, how)
		}
	}
	t.Logf("%d passed, %d failed as known or not, %d skipped by the runner (another kind or version of server)", passed, failed, skipped)
	return passed
}

// knownFailures reads a list of what fails: lines of a case, a tab and the reason.
func knownFailures(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	known := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			name, reason, ok := strings.Cut(line, "\t")
			if _, twice := known[name]; !ok || reason == "" || twice {
				t.Fatalf("%s: %q is not a case, a tab and a reason, or is there twice", file, line)
			}
			known[name] = reason
		}
	}
	return known
}
