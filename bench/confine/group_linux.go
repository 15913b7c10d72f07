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
)

// Group is a control group for one process after the other. It is used by one goroutine.
type Group struct {
	parent string // the group that was divided
	own    string // what this process was moved into; empty: it stayed in parent
	dir    string // for the processes with limits
	open   *os.File
	kills  int64 // so far
}

// New divides the group of this process.
func New() (*Group, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	dir, err := locate(string(mounts), string(groups))
	if err != nil {
		return nil, err
	}
	return divide(dir, os.Getpid())
}

// locate finds the directory of this process's group of version 2.
func locate(mounts, groups string) (string, error) {
	root := ""
	for line := range strings.Lines(mounts) {
		// "36 35 98:0 /root /mount/point options - type source options", proc(5)
		before, after, ok := strings.Cut(line, " - ")
		if fields := strings.Fields(before); ok && len(fields) > 4 && strings.HasPrefix(after, "cgroup2 ") {
			root = fields[4]
			break
		}
	}
	if root == "" {
		return "", errors.New("there is no cgroup v2 hierarchy")
	}
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join(root, path), nil
		}
	}
	return "", errors.New("this process is in no cgroup of version 2")
}

// divide makes a group inside of dir whose memory can be limited.
func divide(dir string, pid int) (*Group, error) {
	if !lists(filepath.Join(dir, "cgroup.controllers"), "memory") {
		return nil, errors.New("the group of this process has no memory controller of cgroup v2 (it belongs to version 1 here, or was not delegated)")
	}
	g := &Group{parent: dir, dir: filepath.Join(dir, fmt.Sprintf("pandobench-engine-%d", pid))}
	if !lists(filepath.Join(dir, "cgroup.subtree_control"), "memory") {
		// A group that has processes cannot hand controllers down: this process makes room for itself first.
		g.own = filepath.Join(dir, fmt.Sprintf("pandobench-%d", pid))
		err := os.Mkdir(g.own, 0o755)
		if err == nil {
			err = put(g.own, "cgroup.procs", strconv.Itoa(pid))
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
	if err := put(g.dir, "memory.max", strconv.FormatInt(limit, 10)); err != nil {
		return err
	}
	if err := put(g.dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // a system without swap has no such file
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(g.open.Fd())
	cmd.Env = append(cmd.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", limit/10*9))
	return nil
}

// Killed reports whether the kernel has killed a process for want of memory since it was last asked.
func (g *Group) Killed() bool {
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
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
			put(g.parent, "cgroup.procs", strconv.Itoa(os.Getpid())),
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
