package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pandodb/pando/internal/cgroup"
)

// Group is a control group for one process after the other. It is used by one goroutine.
type Group struct {
	files
	parent string // the group that was divided
	own    string // what this process was moved into; empty: it stayed in parent
	dir    string // for the processes with limits
	open   *os.File
	kills  int64 // so far
}

// files are the kernel's names for what a group of one of its two versions has.
type files struct {
	limit    string // of memory, page cache included
	swap     string // limit of swap space; a system without swap has no such file
	together bool   // the limit of swap is one of memory and swap together
	events   string // has a line that counts kills
}

var (
	versionOne = files{limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", together: true, events: "memory.oom_control"}
	versionTwo = files{limit: "memory.max", swap: "memory.swap.max", events: "memory.events"}
)

// members is the file that lists the processes of a group, and takes new ones.
const members = "cgroup.procs"

// New makes a group inside of that of this process.
func New() (*Group, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	if dir := locateOne(string(mounts), string(groups)); dir != "" {
		return within(dir, os.Getpid())
	}
	dir, err := locate(string(mounts), string(groups))
	if err != nil {
		return nil, err
	}
	return divide(dir, os.Getpid())
}

// mount is one line of mountinfo.
type mount struct{ root, point, options string }

// mountsOf lists what is mounted of a type of file system.
func mountsOf(mounts, kind string) (list []mount) {
	for line := range strings.Lines(mounts) {
		// "36 35 98:0 /root /mount/point options - type source options", proc(5)
		before, after, ok := strings.Cut(line, " - ")
		fields, of := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && len(of) > 2 && of[0] == kind {
			list = append(list, mount{root: fields[3], point: fields[4], options: of[2]})
		}
	}
	return list
}

// locateOne finds the directory of this process's group of version 1; empty: the memory controller is not one of that version.
func locateOne(mounts, groups string) string {
	for _, m := range mountsOf(mounts, "cgroup") {
		if !slices.Contains(strings.Split(m.options, ","), "memory") {
			continue
		}
		if path := cgroup.Parse(groups).Memory; path != "" {
			return filepath.Join(m.point, strings.TrimPrefix(path, strings.TrimSuffix(m.root, "/")))
		}
	}
	return ""
}

// locate finds the directory of this process's group of version 2.
func locate(mounts, groups string) (string, error) {
	found := mountsOf(mounts, "cgroup2")
	if len(found) == 0 {
		return "", errors.New("there is no hierarchy of control groups with memory in it")
	}
	path := cgroup.Parse(groups).Unified
	if path == "" {
		return "", errors.New("this process is in no cgroup of version 2")
	}
	return filepath.Join(found[0].point, path), nil
}

// newGroup describes a group inside of dir that is yet to be made.
func newGroup(f files, dir string, pid int) *Group {
	return &Group{files: f, parent: dir, dir: filepath.Join(dir, fmt.Sprintf("pandobench-engine-%d", pid))}
}

// within makes a group of version 1 inside of dir.
func within(dir string, pid int) (*Group, error) {
	g := newGroup(versionOne, dir, pid)
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("no group can be made: %w", err)
	}
	return g, nil
}

// divide makes a group of version 2 inside of dir whose memory can be limited.
func divide(dir string, pid int) (*Group, error) {
	if !lists(filepath.Join(dir, "cgroup.controllers"), "memory") {
		return nil, errors.New("the group of this process has no memory controller (it was not delegated)")
	}
	g := newGroup(versionTwo, dir, pid)
	if !lists(filepath.Join(dir, "cgroup.subtree_control"), "memory") {
		// A group that has processes cannot hand controllers down: this process makes room for itself first.
		g.own = filepath.Join(dir, fmt.Sprintf("pandobench-%d", pid))
		err := os.Mkdir(g.own, 0o755)
		if err == nil {
			err = put(g.own, members, strconv.Itoa(pid))
		}
		if err == nil {
			err = put(dir, "cgroup.subtree_control", "+memory")
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the group cannot be divided (start this in one of its own: systemd-run --scope -p Delegate=yes): %w", err), g.Close())
		}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	var err error
	if g.open, err = os.Open(g.dir); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// lists reports whether a file of names has one.
func lists(file, name string) bool {
	text, err := os.ReadFile(file)
	return err == nil && slices.Contains(strings.Fields(string(text)), name)
}

// put writes into one of the kernel's files, which are there or not.
func put(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Confine lets a command begin inside of the group with a limit of memory, without swap. Programs in Go are told by GOMEMLIMIT to
// collect garbage before they get there.
func (g *Group) Confine(cmd *exec.Cmd, limit int64) error {
	if err := g.setLimit(limit); err != nil {
		return err
	}
	cmd.Env = append(cmd.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", limit/10*9))
	if g.open == nil {
		return g.enterFirst(cmd)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(g.open.Fd())
	return nil
}

// setLimit sets the limit of memory, and keeps its processes from using swap beside it.
func (g *Group) setLimit(limit int64) error {
	swap := "0"
	if g.together {
		swap = strconv.FormatInt(limit, 10)
		// It cannot be below that of memory, at no time.
		if err := putIfThere(g.dir, g.swap, "-1"); err != nil {
			return err
		}
	}
	if err := put(g.dir, g.limit, strconv.FormatInt(limit, 10)); err != nil {
		return err
	}
	return putIfThere(g.dir, g.swap, swap)
}

// enterFirst has a command begin with a shell that enters the group and becomes the program: in version 1 a process cannot be started
// inside of a group.
func (g *Group) enterFirst(cmd *exec.Cmd) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	enter := []string{shell, "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(g.dir, members), cmd.Path}
	cmd.Path, cmd.Args = shell, append(enter, cmd.Args[1:]...)
	return nil
}

// putIfThere is put where the kernel has the file.
func putIfThere(dir, file, text string) error {
	if err := put(dir, file, text); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Killed reports whether the kernel has killed a process for want of memory since it was last asked.
func (g *Group) Killed() bool {
	text, err := os.ReadFile(filepath.Join(g.dir, g.events))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			more := n > g.kills
			g.kills = n
			return more
		}
	}
	return false
}

// Close takes the groups away.
func (g *Group) Close() error {
	if g.open != nil {
		g.open.Close()
	}
	err := remove(g.dir)
	if g.own != "" {
		err = errors.Join(err,
			put(g.parent, "cgroup.subtree_control", "-memory"),
			put(g.parent, members, strconv.Itoa(os.Getpid())),
			remove(g.own))
	}
	return err
}

func remove(dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
