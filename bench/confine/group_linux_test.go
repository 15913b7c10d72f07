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
	for _, c := range []struct{ name, mounts, groups, one, two string }{
		{"version 2", mountsOfTwo, "0::/user.slice/run-1.scope\n", "", "/sys/fs/cgroup/user.slice/run-1.scope"},
		{"both", mountsOfOne + mountsOfTwo, "4:memory:/a\n0::/\n", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup"},
		{"version 1 only", mountsOfOne, "3:cpu,cpuacct:/b\n4:hugetlb,memory:/a\n", "/sys/fs/cgroup/memory/a", ""},
		{"version 1, of which a part is mounted", strings.Replace(mountsOfOne, " / ", " /box ", 1), "4:memory:/box/a\n", "/sys/fs/cgroup/memory/a", ""},
		{"version 1 without memory", strings.Replace(mountsOfOne, "rw,memory", "rw,cpu", 1) + mountsOfTwo, "4:cpu:/a\n0::/\n", "", "/sys/fs/cgroup"},
	} {
		if one := locateOne(c.mounts, c.groups); one != c.one {
			t.Errorf("%s: %q of version 1, want %q", c.name, one, c.one)
		}
		two, err := locate(c.mounts, c.groups)
		if two != c.two || (err == nil) != (c.two != "") {
			t.Errorf("%s: %q of version 2, %v, want %q", c.name, two, err, c.two)
		}
	}
}

// In version 1 a command enters the group by itself.
func TestConfineInVersionOne(t *testing.T) {
	g, err := within(t.TempDir(), 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{versionOne.limit, versionOne.swap, members} {
		if err := os.WriteFile(filepath.Join(g.dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", "echo $$ $GOMEMLIMIT")
	if err := g.Confine(cmd, 200<<20); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	entered, err := os.ReadFile(filepath.Join(g.dir, members))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(entered)) + " 188743680\n"; string(out) != want || strings.TrimSpace(string(entered)) == "" {
		t.Errorf("the command says %q, entered is %q", out, entered)
	}
	for name, want := range map[string]string{versionOne.limit: "209715200", versionOne.swap: "209715200"} {
		if text, _ := os.ReadFile(filepath.Join(g.dir, name)); string(text) != want {
			t.Errorf("%s has %q, want %q", name, text, want)
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
