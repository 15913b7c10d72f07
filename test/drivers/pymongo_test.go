package drivers

import (
	"bufio"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// packages are what PyMongo's tests need, with what they need in turn.
var packages = []string{
	"pymongo==4.20.0", "dnspython==2.9.2", "pytest==9.2.0", "pytest-asyncio==1.5.0", "iniconfig==2.3.1", "packaging==26.3",
	"pluggy==1.7.0", "Pygments==2.21.0", "typing_extensions==4.16.0",
}

// modules run the specifications' unified cases with the synchronous client, each group against a server of its own, side by
// side. The asynchronous client's modules run the same cases, and are left out.
var modules = map[string][]string{
	"operations": {
		"test_crud_unified", "test_collection_management", "test_index_management", "test_run_command", "test_gridfs_spec",
		"test_read_write_concern_spec", "test_causal_consistency", "test_sessions_unified",
	},
	"faults": {
		"test_retryable_reads_unified", "test_retryable_writes_unified", "test_versioned_api_integration", "test_command_logging",
		"test_command_monitoring",
	},
	"transactions": {"test_transactions_unified"},
	"streams":      {"test_change_stream"},
}

// TestPyMongo runs the drivers' unified specification tests and compares what fails with known_failures.txt, both ways.
func TestPyMongo(t *testing.T) {
	need(t, "python3")
	dir := t.TempDir()
	python := filepath.Join(dir, "venv", "bin", "python")
	must(t, dir, time.Minute, "python3", "-m", "venv", "venv")
	must(t, dir, 3*time.Minute, python, append([]string{"-m", "pip", "install", "-q"}, packages...)...)
	must(t, dir, 3*time.Minute, python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "pymongo", packages[0])
	must(t, dir, time.Minute, "tar", "xzf", "pymongo-4.20.0.tar.gz")
	known := knownFailures(t)
	for name, list := range modules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := specifications(t, dir, python, name, list)
			if passed := compare(t, got, known, list); passed < 20 {
				t.Errorf("only %d cases passed: the runner does not see the server as it is", passed)
			}
		})
	}
}

// specifications runs modules and returns the outcome of each case.
func specifications(t *testing.T, dir, python, name string, list []string) map[string]string {
	source := filepath.Join(dir, "pymongo-4.20.0")
	run := filepath.Join(dir, name)
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
	host, port, _ := strings.Cut(serve(t, "--test-commands"), ":")
	report := filepath.Join(run, "report.xml")
	args := []string{"-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--junitxml=" + report}
	for _, m := range list {
		args = append(args, filepath.Join("test", m+".py"))
	}
	out, runErr := do(t, run, 6*time.Minute, []string{"DB_IP=" + host, "DB_PORT=" + port}, python, args...)
	outcome, err := readReport(report)
	if err != nil {
		t.Fatalf("pytest left no report: %v, %v\n%s", err, runErr, last(out, 4000))
	}
	if t.Cleanup(func() {
		if t.Failed() {
			t.Log(last(out, 20_000))
		}
	}); len(outcome) == 0 {
		t.Fatal("pytest ran no case")
	}
	return outcome
}

// readReport reads a report of pytest in JUnit's XML: passed, failed or skipped, by module.class.case.
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
func compare(t *testing.T, outcome map[string]string, known map[string]string, list []string) (passed int) {
	var skipped, failed int
	for name, how := range outcome {
		_, listed := known[name]
		switch how {
		case "passed":
			passed++
			if listed {
				t.Errorf("%s passes: take it off known_failures.txt", name)
			}
		case "failed":
			failed++
			if !listed {
				t.Errorf("%s fails, and is not in known_failures.txt", name)
			}
		default:
			skipped++
		}
	}
	for name := range known {
		module, _, _ := strings.Cut(name, ".")
		if how := outcome[name]; slices.Contains(list, module) && how != "passed" && how != "failed" {
			t.Errorf("%s is in known_failures.txt, and did not run (%s)", name, how)
		}
	}
	t.Logf("%d passed, %d failed as known or not, %d skipped by the runner (another kind or version of server)", passed, failed, skipped)
	return passed
}

// knownFailures reads known_failures.txt: lines of a case, a tab and the reason.
func knownFailures(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open("known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	known := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			name, reason, ok := strings.Cut(line, "\t")
			if _, twice := known[name]; !ok || reason == "" || twice {
				t.Fatalf("known_failures.txt: %q is not a case, a tab and a reason, or is there twice", line)
			}
			known[name] = reason
		}
	}
	return known
}
