// Package command is the language of the log: what one batch does, as a sequence of commands in a compact binary form.
// The public package writes it, for single writes, batches and transactions; the commit pipeline, recovery, the change feed and Salvage
// read it.
//
// An Encoder appends to one buffer that it keeps; a Decoder walks over a payload and hands out slices of it. Payloads may be
// joined end to end: every one says its keyspace with its first command. Neither does I/O, holds state between batches or
// panics on bytes; whatever is not a well-formed command is ErrMalformed.
//
// Cost: about one copy of the key and value for each command, and no allocation once the buffer has grown. A Put costs two
// to five bytes beside its key and value. The bytes are described in docs/format/command.md.
package command

import (
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
)

// ErrMalformed is what errors.Is finds when bytes are not a sequence of commands, and corrupt.Err with it: they were written as one.
var ErrMalformed = fmt.Errorf("malformed command: %w", corrupt.Err)

// Op says what a command does. The numbers are on disk: never change them.
type Op uint8

const (
	// Put stores Value under Key.
	Put Op = 1
	// PutApart stores a reference (package value) to a value blob under Key.
	PutApart Op = 2
	// Delete removes Key.
	Delete Op = 3
	// DeleteRange removes all keys from Key on that are smaller than Value; a nil Value means to the end of the keyspace.
	DeleteRange Op = 4
	// CreateKeyspace makes Keyspace with the name Key and the encoded options Value.
	CreateKeyspace Op = 5
	// DropKeyspace removes Keyspace and all that it holds.
	DropKeyspace Op = 6
	// Clock raises the high-water mark of the clock to Expiry.
	Clock Op = 7
	// Bulk stands for the commands in a file (package spill): Key is its number and Value how many commands it holds, each
	// eight bytes, big-endian. It is the only command of its payload.
	Bulk Op = 8
	// Note changes nothing: Key is what the writer tells those who read the log.
	Note Op = 9
)

// Limits that a Decoder enforces, so that damaged lengths are found at once.
const (
	MaxKey     = record.MaxKey
	MaxValue   = record.MaxInline // of Put, PutApart and DeleteRange
	MaxOptions = 1 << 20          // of CreateKeyspace
)

// Bits of the first byte beside the operation. They are on disk.
const (
	opMask       = 0x0f
	flagKeyspace = 0x10 // the keyspace follows; otherwise it is that of the command before
	flagExpiry   = 0x20 // an expiry follows
	flagOpen     = 0x40 // DeleteRange without an upper end
	flagUnused   = 0x80
)

// Command is one step of a batch. Its slices alias the payload that it was decoded from.
type Command struct {
	Op       Op
	Keyspace uint32
	Key      []byte
	Value    []byte
	Expiry   uint64 // Unix milliseconds; 0: none
}

// Record is what a Put, PutApart or Delete leaves under its key.
func (c Command) Record() record.Record {
	switch c.Op {
	case Put:
		return record.Record{Kind: record.Inline, Expiry: c.Expiry, Value: c.Value}
	case PutApart:
		return record.Record{Kind: record.Apart, Expiry: c.Expiry, Value: c.Value}
	}
	return record.Record{Kind: record.Tombstone}
}

// hasKey and hasValue say which parts the bytes of an operation have.
func (op Op) hasKey() bool {
	return op == Put || op == PutApart || op == Delete || op == DeleteRange || op == CreateKeyspace || op == Bulk || op == Note
}

func (op Op) hasValue() bool {
	return op == Put || op == PutApart || op == DeleteRange || op == CreateKeyspace || op == Bulk
}

func (op Op) maxValue() uint64 {
	if op == CreateKeyspace {
		return MaxOptions
	}
	return MaxValue
}
