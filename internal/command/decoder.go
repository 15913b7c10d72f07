package command

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Decoder walks over the commands of a payload:
//
//	d := command.NewDecoder(payload)
//	for d.Next() {
//		use(d.Command())
//	}
//	err := d.Err()
type Decoder struct {
	rest     []byte
	length   int // of the payload, to tell where it went wrong
	started  bool
	keyspace uint32 // of the last command, for those that name none
	command  Command
	err      error
}

// NewDecoder starts at the first command of payload, which must not change while it is read.
func NewDecoder(payload []byte) Decoder { return Decoder{rest: payload, length: len(payload)} }

// Command is the one that Next moved to.
func (d *Decoder) Command() Command { return d.command }

// Err is what ended the walk early.
func (d *Decoder) Err() error { return d.err }

// Next moves to the next command. It returns false at the end of the payload, or when Err is set.
func (d *Decoder) Next() bool { return d.NextTo(&d.command) }

// NextTo is Next, with the command in c instead of Command: where it stays, it need not be copied. When it returns false, c is anything.
func (d *Decoder) NextTo(c *Command) bool {
	if d.err != nil || len(d.rest) == 0 {
		return false
	}
	at := d.length - len(d.rest)
	if reason := d.decode(c); reason != "" {
		d.err = fmt.Errorf("byte %d of %d: %w: %s", at, d.length, ErrMalformed, reason)
		return false
	}
	return true
}

// decode reads one command and returns what is wrong with it.
func (d *Decoder) decode(c *Command) string {
	first := d.rest[0]
	d.rest = d.rest[1:]
	op := Op(first & opMask)
	if op < Put || op > Note || first&flagUnused != 0 || first&flagOpen != 0 && op != DeleteRange {
		return "unknown operation"
	}
	if first&flagKeyspace != 0 {
		ks, ok := d.uvarint(math.MaxUint32)
		if !ok {
			return "keyspace"
		}
		d.keyspace = uint32(ks)
	} else if !d.started {
		return "the first command names no keyspace"
	}
	d.started = true
	c.Op, c.Keyspace, c.Expiry = op, d.keyspace, 0
	if first&flagExpiry != 0 {
		expiry, ok := d.uvarint(math.MaxUint64)
		if !ok || expiry == 0 || op != Put && op != PutApart && op != Clock {
			return "expiry"
		}
		c.Expiry = expiry
	}
	return d.contents(c, first&flagOpen != 0)
}

// contents reads the lengths, the key and the value of an operation that has them.
func (d *Decoder) contents(c *Command, open bool) string {
	op := c.Op
	if !op.hasKey() {
		c.Key, c.Value = nil, nil
		return ""
	}
	keyLength, ok := d.uvarint(MaxKey)
	if !ok {
		return "length of the key"
	}
	var valueLength uint64
	if op.hasValue() {
		if valueLength, ok = d.uvarint(op.maxValue()); !ok || open && valueLength != 0 {
			return "length of the value"
		}
	}
	if keyLength+valueLength > uint64(len(d.rest)) {
		return "cut short"
	}
	c.Key, c.Value = d.take(keyLength), nil
	if op.hasValue() && !open {
		c.Value = d.take(valueLength)
	}
	if op == Bulk && (keyLength != bulkField || valueLength != bulkField) {
		return "length of a file's number"
	}
	return ""
}

func (d *Decoder) uvarint(max uint64) (uint64, bool) {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > max {
		return 0, false
	}
	d.rest = d.rest[n:]
	return v, true
}

func (d *Decoder) take(n uint64) []byte {
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

// Count walks over a whole payload, which proves that it is well formed, and returns how many commands there are, those for
// which a Bulk stands included. Recovery calls it before it applies the first one, so that a batch is applied as a whole or
// not at all.
func Count(payload []byte) (int, error) {
	d := NewDecoder(payload)
	n := 0
	for d.Next() {
		if d.command.Op == Bulk {
			_, commands := d.command.Spilled()
			n += int(commands)
			continue
		}
		n++
	}
	return n, d.Err()
}

// bulkField is the length of the key and of the value of a Bulk.
const bulkField = 8

// Spilled returns what a Bulk says: the number of the file and how many commands it holds.
func (c Command) Spilled() (number, commands uint64) {
	return binary.BigEndian.Uint64(c.Key), binary.BigEndian.Uint64(c.Value)
}
