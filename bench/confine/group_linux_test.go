package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mountsOfTwo = "24 30 0:22 / /proc rw shared:1 - proc proc rw\n31 30 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	mountsOfOne = "33 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)

func TestLocate(t *testing.T) {
	for _, c := range []struct{ name, mounts, groups, want string }{
		{"version 2", mountsOfTwo, "0::/user.slice/run-1.scope\n", "/sys/fs/cgroup/user.slice/run-1.scope"},
		{"both, with the process in the root of version 2", mountsOfOne + mountsOfTwo, "4:memory:/a\n0::/\n", "/sys/fs/cgroup"},
		{"version 1 only", mountsOfOne, "4:memory:/a\n", ""},
	} {
		got, err := locate(c.mounts, c.groups)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// fakeGroup is a directory that looks like a control group's.
func fakeGroup(t *testing.T, controllers, handedDown string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": handedDown, "cgroup.procs": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDivide(t *testing.T) {
	if _, err := divide(fakeGroup(t, "cpu pids\n", ""), 7); err == nil || !strings.Contains(err.Error(), "no memory controller") {
		t.Errorf("without the controller: %v", err)
	}
	// An ordinary directory has no cgroup.procs in a new one: the same happens to who may not write it.
	if _, err := divide(fakeGroup(t, "cpu memory\n", "cpu\n"), 7); err == nil || !strings.Contains(err.Error(), "systemd-run") {
		t.Errorf("with a controller that cannot be handed down: %v", err)
	}
}

func TestConfine(t *testing.T) {
	g, err := divide(fakeGroup(t, "cpu memory\n", "cpu memory\n"), 7)
	if err != nil {
		t.Fatal(err)
	}
	limit := filepath.Join(g.dir, "memory.max")
	if err := os.WriteFile(limit, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("true")
	if err := g.Confine(cmd, 200<<20); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(limit); string(text) != "209715200" || !cmd.SysProcAttr.UseCgroupFD || cmd.Env[len(cmd.Env)-1] != "GOMEMLIMIT=188743680" {
		t.Errorf("limit %q, attributes %+v", text, cmd.SysProcAttr)
	}
	events := filepath.Join(g.dir, "memory.events")
	for _, c := range []struct {
		text string
		want bool
	}{{"oom 0\noom_kill 0\n", false}, {"oom 1\noom_kill 1\n", true}, {"oom 1\noom_kill 1\n", false}} {
		if err := os.WriteFile(events, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := g.Killed(); got != c.want {
			t.Errorf("%q: killed %v", c.text, got)
		}
	}
}

func TestLimitIsMoreThanTheBudget(t *testing.T) {
	for budget, want := range map[int64]int64{16 << 20: 80 << 20, 1 << 30: 1280 << 20} {
		if got := Limit(budget); got != want {
			t.Errorf("budget %d: limit %d, want %d", budget, got, want)
		}
	}
}
