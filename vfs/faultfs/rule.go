package faultfs

import (
	"errors"
	"path/filepath"
)

// Op names a kind of call.
type Op uint8

// The kinds of calls, named after the methods of vfs.FS, vfs.File and vfs.Mapping; OpUnlock is the Close of a lock, OpUnmap that
// of a mapping.
const (
	OpCreate Op = iota
	OpOpen
	OpOpenReadWrite
	OpRemove
	OpRename
	OpLink
	OpMkdirAll
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpUnlock
	OpReadAt
	OpWriteAt
	OpSize
	OpTruncate
	OpAllocate
	OpSync
	OpMap
	OpUnmap
	OpClose
	opCount
)

var opNames = [opCount]string{
	"create", "open", "open for writing", "remove", "rename", "link", "make directory", "list", "stat", "sync directory",
	"lock", "unlock", "read", "write", "size", "truncate", "allocate", "sync", "map", "unmap", "close",
}

// String returns the name of the call.
func (o Op) String() string {
	if o < opCount {
		return opNames[o]
	}
	return "unknown call"
}

// OpSet is a set of kinds of calls.
type OpSet uint32

// Ops makes a set.
func Ops(ops ...Op) OpSet {
	var s OpSet
	for _, op := range ops {
		s |= 1 << op
	}
	return s
}

func (s OpSet) has(op Op) bool { return s&(1<<op) != 0 }

const (
	// Mutating are the calls that change what is stored or what of it is durable.
	Mutating OpSet = 1<<OpCreate | 1<<OpRemove | 1<<OpRename | 1<<OpLink | 1<<OpMkdirAll | 1<<OpSyncDir | 1<<OpLock |
		1<<OpWriteAt | 1<<OpTruncate | 1<<OpAllocate | 1<<OpSync
	// All are all calls.
	All OpSet = 1<<opCount - 1
)

// Fault says what happens to a call.
type Fault uint8

const (
	// Fail returns Err and does nothing. A failed Sync leaves everything unsynced, so that a later one works: the kernels
	// that keep pages dirty. A failed Close, unmapping or unlocking happens all the same.
	Fail Fault = iota
	// ShortWrite writes the first half and returns Err.
	ShortWrite
	// LostWrite reports success and writes nothing.
	LostWrite
	// MisdirectedWrite reports success and writes Shift bytes further on.
	MisdirectedWrite
	// ShortRead reads the first half and returns Err.
	ShortRead
	// FlipBit reads and inverts the bit number Bit, modulo the bits read.
	FlipBit
	// StaleRead returns what stood there before the first WriteAt after Set.
	StaleRead
	// DropSync fails a Sync and marks the pages clean, so that later ones succeed without writing them: Linux. Every
	// handle that is open on the file reports the error once.
	DropSync
	// DropSyncOnce is DropSync that only the calling handle reports.
	DropSyncOnce
)

// ops are the calls on which a fault means something; Fail does on all.
func (f Fault) ops() OpSet {
	switch f {
	case ShortWrite, LostWrite, MisdirectedWrite:
		return Ops(OpWriteAt)
	case ShortRead, FlipBit, StaleRead:
		return Ops(OpReadAt)
	case DropSync, DropSyncOnce:
		return Ops(OpSync)
	}
	return All
}

// ErrInjected is the error of a rule that names none.
var ErrInjected = errors.New("injected fault")

// Rule makes some calls faulty. The zero value fails the next mutating call.
type Rule struct {
	Ops   OpSet  // kinds of calls; 0 = Mutating for Fail, otherwise all that the fault can act on
	Name  string // pattern for the base name as in filepath.Match; "" = every name
	Skip  int    // matching calls that are spared first
	Times int    // matching calls that are hit then; 0 = one, negative = all
	Fault Fault
	Err   error // nil = ErrInjected
	Bit   int64 // for FlipBit
	Shift int64 // for MisdirectedWrite; 0 = 4096

	passed, acted int
}

func (r *Rule) matches(op Op, names []string) bool {
	ops := r.Ops
	if ops == 0 {
		ops = r.Fault.ops()
		if r.Fault == Fail {
			ops = Mutating
		}
	}
	if !(ops & r.Fault.ops()).has(op) {
		return false
	}
	if r.Name == "" {
		return true
	}
	for _, name := range names {
		if ok, err := filepath.Match(r.Name, filepath.Base(name)); ok && err == nil {
			return true
		}
	}
	return false
}

// take counts a matching call and tells whether it is hit.
func (r *Rule) take() bool {
	if r.passed < r.Skip {
		r.passed++
		return false
	}
	if r.Times >= 0 && r.acted >= max(r.Times, 1) {
		return false
	}
	r.acted++
	return true
}

func (r *Rule) cause() error {
	if r.Err == nil {
		return ErrInjected
	}
	return r.Err
}
