// Package faultfs wraps a vfs.FS so that tests can make any call fail, lie or be watched.
//
// It promises that without rules and hook it is the file system that it wraps, that each rule acts exactly on the calls that
// it names, and that it knows every file, mapping and lock that is open. It draws no random numbers: the same rules and the
// same calls give the same faults. Bytes reached through a mapping are out of its reach.
//
// Failures are what the rules say, wrapped in *fs.PathError. Cost: one lock and a look at each rule for every call.
package faultfs

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pandodb/pando/vfs"
)

// FS is a file system with faults. Make it with New.
type FS struct {
	base vfs.FS

	mu        sync.Mutex // never held while the wrapped file system or the hook runs
	rules     []*Rule
	hook      func(op Op, name string) error
	counts    [opCount]int
	mutations int
	open      map[any]opened
	files     map[string]*fileState
}

// opened describes something that must be closed.
type opened struct {
	what, name string
	call       int
}

// fileState is shared by the handles of one name.
type fileState struct {
	handles []*file
	old     []piece // what was overwritten, oldest first; kept while a StaleRead rule is set
}

type piece struct {
	off  int64
	data []byte
}

// New wraps base.
func New(base vfs.FS) *FS {
	return &FS{base: base, open: map[any]opened{}, files: map[string]*fileState{}}
}

// Set replaces all rules. Skip and Times count from now.
func (f *FS) Set(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
	for _, r := range rules {
		f.rules = append(f.rules, &r)
	}
	for _, state := range f.files {
		state.old = nil
		for _, h := range state.handles {
			h.owed = nil
		}
	}
}

// FailMutation makes the call number k (from 0) of the mutating calls from now on fail with err, and removes other rules.
// Loop over k until Triggered reports 0.
func (f *FS) FailMutation(k int, err error) { f.Set(Rule{Skip: k, Err: err}) }

// Triggered tells how often the rules have acted since Set.
func (f *FS) Triggered() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := 0
	for _, r := range f.rules {
		total += r.acted
	}
	return total
}

// OnCall sets the function that runs before each mutating call, nil for none. An error of it becomes the call's. It may use
// the wrapped file system, for crash images say, but must not call back into f's own operations.
func (f *FS) OnCall(hook func(op Op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

// Count is the number of calls of one kind so far, failed ones included.
func (f *FS) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

// Mutations is the number of mutating calls so far.
func (f *FS) Mutations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mutations
}

// Leaks describes every file, mapping and lock that is open, in the order in which they were opened.
func (f *FS) Leaks() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []opened
	for _, o := range f.open {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b opened) int { return cmp.Compare(a.call, b.call) })
	var lines []string
	for _, o := range all {
		lines = append(lines, fmt.Sprintf("%s %s, opened by call %d", o.what, o.name, o.call))
	}
	return lines
}

// begin counts a call and finds the rule that acts on it; rules that only fail are answered with the error.
func (f *FS) begin(op Op, names ...string) (*Rule, error) {
	f.mu.Lock()
	f.counts[op]++
	var hook func(Op, string) error
	if Mutating.has(op) {
		f.mutations++
		hook = f.hook
	}
	var acting *Rule
	for _, r := range f.rules {
		if r.matches(op, names) && r.take() && acting == nil {
			acting = r
		}
	}
	f.mu.Unlock()
	if hook != nil {
		if err := hook(op, names[0]); err != nil {
			return nil, failed(op, names[0], err)
		}
	}
	if acting == nil || acting.Fault != Fail {
		return acting, nil
	}
	return nil, failed(op, names[0], acting.cause())
}

func failed(op Op, name string, err error) error {
	return &fs.PathError{Op: op.String(), Path: name, Err: err}
}

func (f *FS) track(key any, what, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := 0
	for _, n := range f.counts {
		call += n
	}
	f.open[key] = opened{what, name, call}
}

func (f *FS) untrack(key any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, key)
}

// MostHandles implements vfs.HandleLimiter, with what the base says.
func (f *FS) MostHandles() int { return vfs.MostHandles(f.base) }

// Free implements vfs.SpaceTeller, with what the base says.
func (f *FS) Free(dir string) (bytes int64, known bool) { return vfs.Free(f.base, dir) }

// Create is vfs.FS.Create.
func (f *FS) Create(name string) (vfs.File, error) { return f.openWith(OpCreate, name, f.base.Create) }

// Open is vfs.FS.Open.
func (f *FS) Open(name string) (vfs.File, error) { return f.openWith(OpOpen, name, f.base.Open) }

// OpenReadWrite is vfs.FS.OpenReadWrite.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) {
	return f.openWith(OpOpenReadWrite, name, f.base.OpenReadWrite)
}

func (f *FS) openWith(op Op, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	if _, err := f.begin(op, name); err != nil {
		return nil, err
	}
	base, err := open(name)
	if err != nil {
		return nil, err
	}
	h := &file{fs: f, base: base, name: name}
	f.track(h, "file", name)
	f.mu.Lock()
	defer f.mu.Unlock()
	h.state = f.files[filepath.Clean(name)]
	if h.state == nil {
		h.state = &fileState{}
		f.files[filepath.Clean(name)] = h.state
	}
	h.state.handles = append(h.state.handles, h)
	return h, nil
}

// Remove is vfs.FS.Remove.
func (f *FS) Remove(name string) error {
	if _, err := f.begin(OpRemove, name); err != nil {
		return err
	}
	err := f.base.Remove(name)
	if err == nil {
		f.moved(name, "")
	}
	return err
}

// Rename is vfs.FS.Rename. A rule's Name may match either name.
func (f *FS) Rename(oldName, newName string) error {
	if _, err := f.begin(OpRename, oldName, newName); err != nil {
		return err
	}
	err := f.base.Rename(oldName, newName)
	if err == nil && filepath.Clean(oldName) != filepath.Clean(newName) {
		f.moved(oldName, newName)
	}
	return err
}

// moved keeps the shared state with the file when its name changes.
func (f *FS) moved(oldName, newName string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.files[filepath.Clean(oldName)]
	delete(f.files, filepath.Clean(oldName))
	if newName == "" {
		return
	}
	delete(f.files, filepath.Clean(newName))
	if state != nil {
		f.files[filepath.Clean(newName)] = state
	}
}

// Link is vfs.FS.Link. A rule's Name may match either name.
func (f *FS) Link(oldName, newName string) error {
	if _, err := f.begin(OpLink, oldName, newName); err != nil {
		return err
	}
	return f.base.Link(oldName, newName)
}

// MkdirAll is vfs.FS.MkdirAll.
func (f *FS) MkdirAll(dir string) error {
	if _, err := f.begin(OpMkdirAll, dir); err != nil {
		return err
	}
	return f.base.MkdirAll(dir)
}

// List is vfs.FS.List.
func (f *FS) List(dir string) ([]string, error) {
	if _, err := f.begin(OpList, dir); err != nil {
		return nil, err
	}
	return f.base.List(dir)
}

// Stat is vfs.FS.Stat.
func (f *FS) Stat(name string) (vfs.Info, error) {
	if _, err := f.begin(OpStat, name); err != nil {
		return vfs.Info{}, err
	}
	return f.base.Stat(name)
}

// SyncDir is vfs.FS.SyncDir.
func (f *FS) SyncDir(dir string) error {
	if _, err := f.begin(OpSyncDir, dir); err != nil {
		return err
	}
	return f.base.SyncDir(dir)
}

// Lock is vfs.FS.Lock.
func (f *FS) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if _, err := f.begin(OpLock, name); err != nil {
		return nil, err
	}
	base, err := f.base.Lock(name, mode)
	if err != nil {
		return nil, err
	}
	l := &closer{fs: f, base: base, op: OpUnlock, name: name}
	f.track(l, "lock", name)
	return l, nil
}

// closer is a lock. A failing close has closed all the same, as close(2) does.
type closer struct {
	fs   *FS
	base io.Closer
	op   Op
	name string
}

// Orderly implements vfs.OrderedLock.
func (c *closer) Orderly() bool {
	l, ok := c.base.(vfs.OrderedLock)
	return ok && l.Orderly()
}

// LeaveInOrder implements vfs.OrderedLock.
func (c *closer) LeaveInOrder() {
	if l, ok := c.base.(vfs.OrderedLock); ok {
		l.LeaveInOrder()
	}
}

func (c *closer) Close() error {
	_, fault := c.fs.begin(c.op, c.name)
	c.fs.untrack(c)
	if err := c.base.Close(); err != nil {
		return err
	}
	return fault
}
