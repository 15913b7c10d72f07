package engine

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/wal"
)

// Recovery takes in the log as it is read: the commands of a record are decoded, and their keys hashed, before the first one of them is
// applied. Short records wait for others, so that what their keys are looked up in comes from memory side by side; the log's own bytes
// last as long as the call that delivers them, so these are copied. One goroutine does all of it: with a second one for the memtables each
// record goes from one processor's cache to the other's.

const (
	// shortBytes is the length from which on a record waits for nobody.
	shortBytes = 4 << 10
	// waitBytes and waitCommands is how much may wait.
	waitBytes    = 16 << 10
	waitCommands = 8 * prefetchWidth
	// wholeBytes is the longest record whose commands are kept while it is decoded. A longer one is decoded twice.
	wholeBytes = 512 << 10
)

// replayed is a record of the log.
type replayed struct {
	last     uint64 // the sequence number of its last command
	commands int
	bytes    int // of keys and values
}

// replay takes the log in. Recovery makes one before anything else runs, calls take for each record, and drain at the end, also where
// take has failed.
type replay struct {
	e    *Engine
	last uint64 // of the last record that was taken in

	renewed bool // values were written again, and wait for a sync

	// Records that were taken in and not applied.
	records  []replayed
	commands []command.Command // of all of them
	hashes   []uint64          // of the keys
	data     []byte            // what commands refer to
}

func (e *Engine) newReplay() *replay { return &replay{e: e, last: e.lastSeq} }

// take takes one record of the log in; last is the sequence number of its last command.
func (r *replay) take(last uint64, commands []byte, synced bool) error {
	if last <= r.last {
		return nil // the roots hold it
	}
	if len(commands) > wholeBytes {
		return r.takeLarge(last, commands, synced)
	}
	short := len(commands) < shortBytes
	if !short || len(r.commands) >= waitCommands || len(r.data)+len(commands) > waitBytes {
		if err := r.drain(); err != nil {
			return err
		}
	}
	if short {
		if r.data == nil {
			r.data = make([]byte, 0, waitBytes)
		}
		r.data = append(r.data, commands...)
		commands = r.data[len(r.data)-len(commands):]
	}
	if err := r.queue(last, commands, synced); err != nil || short {
		return err
	}
	return r.drain()
}

// queue adds a record to those that wait. When it fails nothing of the record is to be applied.
func (r *replay) queue(last uint64, commands []byte, synced bool) error {
	first := len(r.commands)
	rec := replayed{last: last}
	d := command.NewDecoder(commands)
	for {
		cmd := r.next()
		if !d.NextTo(cmd) {
			r.commands = r.commands[:len(r.commands)-1]
			break
		}
		bulk, err := r.survived(cmd, synced)
		if err != nil || bulk {
			r.drop(first)
			rec.commands, rec.bytes = 0, 0
		}
		if err != nil {
			return err
		}
		if bulk {
			break
		}
		r.hash(cmd)
		rec.commands++
		rec.bytes += len(cmd.Key) + len(cmd.Value)
	}
	if err := d.Err(); err != nil {
		r.drop(first)
		return err
	}
	r.records = append(r.records, rec)
	r.last = last
	return nil
}

// takeLarge takes a record in whose commands are too many to be kept.
func (r *replay) takeLarge(last uint64, commands []byte, synced bool) error {
	if err := r.drain(); err != nil {
		return err
	}
	rec := replayed{last: last}
	d := command.NewDecoder(commands)
	for d.Next() {
		cmd := d.Command()
		bulk, err := r.survived(&cmd, synced)
		if err != nil {
			return err
		}
		if bulk {
			r.last, r.e.lastSeq = last, last
			return nil
		}
		rec.commands++
		rec.bytes += len(cmd.Key) + len(cmd.Value)
	}
	if err := d.Err(); err != nil {
		return err // nothing of it has been applied
	}
	if err := r.e.roomFor(rec); err != nil {
		return err
	}
	r.e.apply(r.e.current.Load().Tables[0].Table, last-uint64(rec.commands)+1, commands)
	r.last, r.e.lastSeq = last, last
	return nil
}

// survived looks at what a command refers to. A value apart has to be there: in a power cut the record may reach the disk before the
// value; then neither was acknowledged as synced. A bulk load is committed by a root, which would lie behind this record: it was not
// finished, and neither it nor what is in the record with it counts.
func (r *replay) survived(c *command.Command, synced bool) (bulk bool, err error) {
	switch {
	case c.Op == command.Bulk:
		return true, r.e.forgetSpill(*c)
	case c.Op == command.CreateKeyspace:
		return false, r.e.checkCreation(c)
	case c.Op != command.PutApart || synced: // then the value was synced too
		return false, nil
	}
	ref, err := value.DecodeRef(c.Value)
	if err != nil {
		return false, err
	}
	err = corrupt.Twice(func() error { return value.Verify(r.e.store, ref) })
	if errors.Is(err, segment.ErrUnreadable) {
		// The device does not tell whether it is there. It may have been acknowledged, and so may what follows: who reads it is told.
		r.e.o.Logger.Warn("a value that the log refers to cannot be read", "error", err)
		return false, nil
	}
	if errors.Is(err, corrupt.Err) {
		return false, fmt.Errorf("%w: %w", wal.ErrCut, err)
	}
	if err != nil {
		return false, err // its file does not open, where there are no handles left, say: that tells nothing of the value
	}
	if r.e.o.ReadOnly {
		return false, nil
	}
	r.renewed = true
	return false, corrupt.Twice(func() error { return value.Renew(r.e.store, ref) })
}

// settling makes the values durable that were renewed: the log is going to say of the records which refer to them that they are.
func (r *replay) settling() error {
	if !r.renewed {
		return nil
	}
	return r.e.store.SyncValues()
}

// next is the place of one more command. It is decoded where it stays: to copy what was written a moment ago, in other pieces than those
// in which it is read, the processor waits until all of it has reached memory.
func (r *replay) next() *command.Command {
	n := len(r.commands)
	if n == cap(r.commands) {
		r.commands = append(r.commands, command.Command{})
	}
	r.commands = r.commands[:n+1]
	return &r.commands[n]
}

// hash keeps the hash of the newest command's key.
func (r *replay) hash(cmd *command.Command) {
	hash := uint64(0)
	if cmd.Op != command.Note { // of no use for a few other kinds, and harmless
		hash = record.Hash(cmd.Keyspace, cmd.Key)
	}
	r.hashes = append(r.hashes, hash)
}

// drop takes the commands from the one numbered first on back.
func (r *replay) drop(first int) {
	r.commands, r.hashes = r.commands[:first], r.hashes[:first]
}

// drain applies what waits. It waits no more when that ends in a fault of the log's memory either: its commands are in there.
func (r *replay) drain() error {
	records, commands, hashes := r.records, r.commands, r.hashes
	r.records, r.commands, r.hashes, r.data = records[:0], commands[:0], hashes[:0], r.data[:0]
	return r.e.applyAll(records, commands, hashes)
}

// applyAll puts records into memtables.
func (e *Engine) applyAll(records []replayed, commands []command.Command, hashes []uint64) error {
	at, ahead := 0, 0
	for _, rec := range records {
		if rec.commands == 0 {
			e.lastSeq = rec.last
			continue
		}
		if err := e.roomFor(rec); err != nil {
			return err
		}
		t := e.current.Load().Tables[0].Table
		for seq := rec.last - uint64(rec.commands) + 1; seq <= rec.last; seq++ {
			if at == ahead {
				ahead = min(at+prefetchWidth, len(hashes))
				e.sink += t.Prefetch(hashes[at:ahead])
			}
			e.applyOne(t, &commands[at], hashes[at], seq)
			at++
		}
		e.lastSeq = rec.last
	}
	return nil
}

// roomFor puts a new memtable in front where the present one does not take a record.
func (e *Engine) roomFor(rec replayed) error {
	if e.takes(e.current.Load().Tables[0].Table, rec.commands, rec.bytes) {
		return nil
	}
	return e.freeze(rec.commands, rec.bytes)
}
