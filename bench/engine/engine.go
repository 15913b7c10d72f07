// Package engine is what the benchmark asks of a storage engine: the least that lets every rival do its work the way an
// expert on it would write it, and nothing that only one of them has.
//
// Adapters add no locks, copies or goroutines beyond what the engine itself makes its users write. Where they must (a value
// that is only valid inside of a transaction is copied out) the comment of the adapter says so. Errors are returned as the
// engine gave them.
package engine

import (
	"errors"
	"fmt"
)

// Class says what an acknowledged write survives. Tables compare engines only within one class.
type Class uint8

const (
	// None promises nothing: a killed process may lose or damage what was written.
	None Class = iota
	// Relaxed survives a killed process: when a write returned, its bytes are with the operating system.
	Relaxed
	// Durable survives a power cut: when a write returned, its bytes are on stable storage.
	Durable
)

// String returns the name of the class.
func (c Class) String() string {
	switch c {
	case None:
		return "none"
	case Relaxed:
		return "relaxed"
	case Durable:
		return "durable"
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// ParseClass is the inverse of String.
func ParseClass(s string) (Class, error) {
	for _, c := range []Class{None, Relaxed, Durable} {
		if c.String() == s {
			return c, nil
		}
	}
	return None, fmt.Errorf("class %q: want none, relaxed or durable", s)
}

// ErrUnsupported is what an adapter answers when the engine has no such thing. The cell is then left out and says so.
var ErrUnsupported = errors.New("not supported by this engine")

// Options says how to open an engine.
type Options struct {
	Dir         string
	Class       Class
	MemoryBytes int64 // budget for caches and memtables together, for engines that have one
	Writers     int   // goroutines that will write at once: some engines group commits only when asked to
	DataBytes   int64 // about how much will be stored: some engines need their largest size in advance
	ValueBytes  int   // about the length of a value: some engines want another layout for long ones
	InOrder     bool  // every put has a key above all that are there: some engines append then
	// Transactions says that updates will go by what they have read: some engines note that only when asked to.
	Transactions bool
}

// Driver describes an engine and opens it.
type Driver struct {
	Name    string
	Version string
	Module  string // Go module path whose version is taken from the build; empty: Version is used as it is
	Kind    string // one line: what structure it is
	// Classes says how the engine gives each class that it can give. A class that is missing cannot be given.
	Classes map[Class]string
	// Weaker marks classes that the engine gives only nearly, with the difference. Such a cell is shown with a mark.
	Weaker map[Class]string
	// Settings is what the adapter sets apart from durability, for the report.
	Settings string
	// Floor marks what is no engine, but what the machine itself takes: it is asked for little, and is nobody's rival.
	Floor bool
	// BlocksWriters says that an open snapshot makes writers wait: no workload writes under one then.
	BlocksWriters bool
	// NoOrder says that the engine keeps its records in no order: no workload walks or seeks in it, and such steps have no cell of it.
	NoOrder bool
	Open    func(Options) (Store, error)
	// OpenDocuments opens an engine that stores documents or rows with indexes; nil: it has none. An engine may have this only.
	OpenDocuments func(Options) (Documents, error)
}

// Op is one write of a batch.
type Op struct {
	Key, Value []byte
	Delete     bool
}

// Scan says what to walk over.
type Scan struct {
	From    []byte // first key, inclusive; nil: from the end that the direction begins with
	Reverse bool
	Limit   int // the walk stops after so many records; 0: never
	// ValueOneIn is for who looks at the value of one record in so many, beginning with the first; 0: at each. An engine that can go by
	// the others without reading them does, and shows nil for them.
	ValueOneIn int
}

// WantsValue says whether the value of the n-th record of the walk, counted from 0, is looked at.
func (s Scan) WantsValue(n int) bool { return s.ValueOneIn < 2 || n%s.ValueOneIn == 0 }

// Visit is called for every record of a scan; key and value are valid during the call only. False ends the walk.
type Visit func(key, value []byte) bool

// Reader is what a store and a snapshot of it have in common.
type Reader interface {
	// Get appends the value of key to dst. Values are copied out: that is what an application needs that goes on working
	// with the value after the call.
	Get(dst, key []byte) (value []byte, found bool, err error)
	// Has reports whether there is such a key.
	Has(key []byte) (bool, error)
	// Scan walks over records in the order of their keys; engines with NoOrder answer ErrUnsupported.
	Scan(s Scan, visit Visit) error
}

// Snapshot is a view of one moment.
type Snapshot interface {
	Reader
	// Close lets go of the moment.
	Close() error
}

// Transaction is what an update works in: it reads the state before it with its own writes in front, and nobody else sees those
// before it has ended.
type Transaction interface {
	Reader
	// Put stores one record, in place of one with the same key. Key and value stay as they are until the transaction has ended: some
	// engines copy them no sooner.
	Put(key, value []byte) error
	// Delete removes one record; that there is none is no error. The key stays as it is, as with Put.
	Delete(key []byte) error
}

// Transactor is a Store of an engine with transactions. Both methods may be ErrUnsupported, and so may a walk in an update.
type Transactor interface {
	// View runs fn with a reader of one moment, which ends when fn returns, and returns the error of fn.
	View(fn func(r Reader) error) error
	// Update runs fn with a transaction and commits it. When fn fails nothing of it stays, and Update returns that error. No update is
	// committed that goes by what another one has changed meanwhile: either they take turns, or fn is run again.
	Update(fn func(t Transaction) error) error
}

// Store is an open engine. It is safe for concurrent use.
type Store interface {
	Reader
	// Put stores one record, in place of one with the same key.
	Put(key, value []byte) error
	// Delete removes one record; that there is none is no error.
	Delete(key []byte) error
	// Write does all of a batch or nothing, and keeps none of its slices.
	Write(batch []Op) error
	// Snapshot holds this moment; it may be ErrUnsupported.
	Snapshot() (Snapshot, error)
	// Settle returns when background work is done: memtables flushed, compactions that were due finished.
	Settle() error
	// Compact makes the files as small as the engine can; it may be ErrUnsupported.
	Compact() error
	// Close closes the engine. What was acknowledged stays, as far as the class goes.
	Close() error
}
