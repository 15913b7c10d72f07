package engine

import (
	"fmt"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/wal"
)

// Recovery takes in the log with two goroutines: one reads and verifies it, decodes the commands and hashes their keys; the other puts
// them into memtables. What goes from one to the other are chunks, which are used again. The second one begins when the first chunk
// is full, so that a short log does without it.

const (
	chunkBytes    = 128 << 10 // of commands; what a record adds once there are as many goes into the next chunk
	chunkCommands = 2048
	chunks        = 4
	// wholeBytes is the longest record that is handed over. A longer one is taken in without decoding all of it at once, by the
	// goroutine that reads it.
	wholeBytes = 512 << 10
)

// chunk is a stretch of the log on its way into memtables.
type chunk struct {
	data     []byte            // what commands refer to: the log's own bytes last as long as the call that delivers them
	commands []command.Command // of all records
	hashes   []uint64          // of the keys
	records  []replayed
}

// replayed is a record of the log.
type replayed struct {
	last     uint64 // the sequence number of its last command
	commands int
	bytes    int // of keys and values
}

// replay takes the log in. Recovery makes one before anything else runs, calls take for each record, and drain at the end, also where
// take has failed.
type replay struct {
	e     *Engine
	last  uint64 // of the last record that was taken in
	chunk *chunk
	made  int
	full  chan *chunk // nil while there is no second goroutine
	empty chan *chunk
	done  chan struct{}
	err   error // of applying; to be read after done
}

func (e *Engine) newReplay() *replay {
	return &replay{e: e, last: e.lastSeq, chunk: new(chunk), made: 1, empty: make(chan *chunk, chunks)}
}

// take takes one record of the log in; last is the sequence number of its last command.
func (r *replay) take(last uint64, commands []byte, synced bool) error {
	if last <= r.last {
		return nil // the roots hold it
	}
	if len(commands) > wholeBytes {
		return r.takeLarge(last, commands, synced)
	}
	c := r.room(len(commands))
	first := len(c.commands)
	c.data = append(c.data, commands...)
	d := command.NewDecoder(c.data[len(c.data)-len(commands):])
	rec := replayed{last: last}
	for d.Next() {
		cmd := d.Command()
		bulk, err := r.survived(&cmd, synced)
		if err != nil || bulk {
			c.drop(first) // nothing of the record is to be applied
			rec.commands, rec.bytes = 0, 0
		}
		if err != nil {
			return err
		}
		if bulk {
			break
		}
		c.add(&cmd)
		rec.commands++
		rec.bytes += len(cmd.Key) + len(cmd.Value)
	}
	if err := d.Err(); err != nil {
		c.drop(first)
		return err
	}
	c.records = append(c.records, rec)
	r.last = last
	return nil
}

// takeLarge takes a record in that is too long to be handed over.
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
	case c.Op != command.PutApart || synced: // then the value was synced too
		return false, nil
	}
	ref, err := value.DecodeRef(c.Value)
	if err != nil {
		return false, err
	}
	if err := value.Verify(r.e.store, ref); err != nil {
		return false, fmt.Errorf("%w: %w", wal.ErrCut, err)
	}
	return false, nil
}

// room returns a chunk with room for a record of n bytes.
func (r *replay) room(n int) *chunk {
	c := r.chunk
	if len(c.commands) < chunkCommands && len(c.data)+n <= cap(c.data) {
		return c
	}
	if len(c.records) > 0 {
		c = r.handOver()
	}
	if cap(c.data) < n {
		c.data = make([]byte, 0, max(n, chunkBytes))
	}
	return c
}

// handOver gives the chunk to the other goroutine and returns an empty one.
func (r *replay) handOver() *chunk {
	if r.full == nil {
		r.full, r.done = make(chan *chunk, chunks), make(chan struct{})
		go r.applyChunks()
	}
	r.full <- r.chunk
	if r.made < chunks {
		r.made++
		r.chunk = new(chunk)
		return r.chunk
	}
	r.chunk = <-r.empty
	return r.chunk
}

// applyChunks is the second goroutine. After an error it goes on taking chunks, so that nobody waits for it.
func (r *replay) applyChunks() {
	defer close(r.done)
	for c := range r.full {
		if r.err == nil {
			r.err = r.e.applyChunk(c)
		}
		c.clear()
		r.empty <- c
	}
}

// drain waits until all that was taken in has been applied.
func (r *replay) drain() error {
	if r.full != nil {
		close(r.full)
		<-r.done
		r.full = nil
	}
	if r.err == nil {
		r.err = r.e.applyChunk(r.chunk)
	}
	r.chunk.clear()
	return r.err
}

func (c *chunk) add(cmd *command.Command) {
	hash := uint64(0)
	if cmd.Op != command.Note { // of no use for a few other kinds, and harmless
		hash = record.Hash(cmd.Keyspace, cmd.Key)
	}
	c.commands = append(c.commands, *cmd)
	c.hashes = append(c.hashes, hash)
}

// drop takes the commands from the one numbered first on back.
func (c *chunk) drop(first int) {
	c.commands, c.hashes = c.commands[:first], c.hashes[:first]
}

func (c *chunk) clear() {
	c.data, c.commands, c.hashes, c.records = c.data[:0], c.commands[:0], c.hashes[:0], c.records[:0]
}

// applyChunk puts the records of a chunk into memtables.
func (e *Engine) applyChunk(c *chunk) error {
	at, ahead := 0, 0
	for _, rec := range c.records {
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
				ahead = min(at+prefetchWidth, len(c.hashes))
				e.sink += t.Prefetch(c.hashes[at:ahead])
			}
			e.applyOne(t, &c.commands[at], c.hashes[at], seq)
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
