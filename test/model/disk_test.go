package model

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// disk is what a world lies on.
type disk interface {
	vfs.FS
	afterKill() disk
	afterPowerCut(memfs.Policy) disk
}

// memory is a simulated disk.
type memory struct{ *memfs.FS }

func newMemory() disk { return memory{memfs.New()} }

func (m memory) afterKill() disk                        { return memory{m.KillImage()} }
func (m memory) afterPowerCut(policy memfs.Policy) disk { return memory{m.CrashImage(policy)} }

// system is a directory of the operating system, in which all names lie. Files are mapped, reserved and forgotten there, as nowhere else.
// Nothing is ever lost there.
type system struct {
	vfs.FS
	root string
}

func newSystem(t *testing.T) disk { return system{osfs.New(), t.TempDir()} }

func (s system) in(name string) string { return filepath.Join(s.root, name) }

func (s system) Create(name string) (vfs.File, error)        { return s.FS.Create(s.in(name)) }
func (s system) Open(name string) (vfs.File, error)          { return s.FS.Open(s.in(name)) }
func (s system) OpenReadWrite(name string) (vfs.File, error) { return s.FS.OpenReadWrite(s.in(name)) }
func (s system) Remove(name string) error                    { return s.FS.Remove(s.in(name)) }
func (s system) Rename(from, to string) error                { return s.FS.Rename(s.in(from), s.in(to)) }
func (s system) Link(from, to string) error                  { return s.FS.Link(s.in(from), s.in(to)) }
func (s system) MkdirAll(dir string) error                   { return s.FS.MkdirAll(s.in(dir)) }
func (s system) List(dir string) ([]string, error)           { return s.FS.List(s.in(dir)) }
func (s system) Stat(name string) (vfs.Info, error)          { return s.FS.Stat(s.in(name)) }
func (s system) SyncDir(dir string) error                    { return s.FS.SyncDir(s.in(dir)) }
func (s system) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	return s.FS.Lock(s.in(name), mode)
}

// afterKill is the directory itself: who goes on with it closes the database before.
func (s system) afterKill() disk                 { return s }
func (s system) afterPowerCut(memfs.Policy) disk { return s }

// TestModelOnTheSystem is TestModel on files of the operating system. They take their time: the programs are shorter.
func TestModelOnTheSystem(t *testing.T) {
	first, n, ops := uint64(1), 2, min(*length, 80)
	if *seedFlag != 0 {
		first, n, ops = *seedFlag, 1, *length
	}
	for i := range n {
		seed := first + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { run(t, newSystem(t), seed, ops) })
	}
}
