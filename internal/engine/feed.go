package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/wal"
)

// notifier wakes those who follow the log when something became visible. While nobody follows, a commit pays a mutex that hardly
// anybody else takes.
type notifier struct {
	mu      sync.Mutex
	waiting int
	wake    chan struct{} // closed and replaced at each notification
	ended   bool
}

func (n *notifier) init() { n.wake = make(chan struct{}) }

func (n *notifier) notify() {
	n.mu.Lock()
	if n.waiting > 0 && !n.ended {
		close(n.wake)
		n.wake = make(chan struct{})
		n.waiting = 0
	}
	n.mu.Unlock()
}

// wait returns a channel that is closed at the next notification.
func (n *notifier) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting++
	return n.wake
}

func (n *notifier) close() {
	n.mu.Lock()
	if !n.ended {
		n.ended = true
		close(n.wake)
	}
	n.mu.Unlock()
}

// changeFunc is told a committed command, its sequence number, and whether it is the last one of its commit.
type changeFunc = func(seq uint64, last bool, c command.Command) error

// Changes calls fn with each committed command from sequence number from on, in commit order, with its sequence number;
// last tells that it is the last one of its commit. With follow it goes on as commits come in, until ctx is done, fn fails or
// the database closes; else it ends at the one that is the newest now. Whoever wants to follow from behind the next change has read what is lost, and
// gets ErrChangesGone.
func (e *Engine) Changes(ctx context.Context, from uint64, follow bool, fn changeFunc) error {
	if e.log == nil {
		if e.o.ReadOnly {
			return ErrReadOnly
		}
		return ErrChangesGone
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	newest := e.visible.Load()
	if follow && from > newest+1 {
		return fmt.Errorf("%w: the newest is %d", ErrChangesGone, newest)
	}
	reader, err := e.log.NewReader(from)
	if err != nil {
		return err
	}
	defer reader.Close()
	if !follow {
		return e.drain(ctx, reader, newest, from, fn)
	}
	for {
		wake := e.feed.wait() // before the newest is asked for, or what comes in between would wait for the one after it
		if err := e.drain(ctx, reader, e.visible.Load(), from, fn); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
			if e.closed.Load() {
				return ErrClosed
			}
		}
	}
}

// drain hands out what there is up to a sequence number. It is fixed, since fn may write.
func (e *Engine) drain(ctx context.Context, reader *wal.Reader, upTo, from uint64, fn changeFunc) error {
	reader.Limit(upTo)
	for {
		last, payload, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		count, err := command.Count(payload)
		if err != nil {
			return err
		}
		if err := e.handOut(ctx, payload, last-uint64(count)+1, last, from, fn); err != nil {
			return err
		}
	}
}

// handOut calls fn for the commands of one commit, the first of which has the number seq, from the number from on.
func (e *Engine) handOut(ctx context.Context, payload []byte, seq, last, from uint64, fn changeFunc) error {
	d := command.NewDecoder(payload)
	for d.Next() {
		c := d.Command()
		if c.Op == command.Bulk {
			return e.handOutSpilled(ctx, c, seq, last, from, fn)
		}
		if seq >= from {
			if err := fn(seq, seq == last, c); err != nil {
				return err
			}
		}
		seq++
	}
	return errors.Join(d.Err(), ctx.Err())
}

// handOutSpilled is handOut for the commands in a spill file. One of no length is that of a load that failed.
func (e *Engine) handOutSpilled(ctx context.Context, c command.Command, seq, last, from uint64, fn changeFunc) error {
	number, count := c.Spilled()
	start := seq
	err := e.readBulk(number, func(f spill.Frame) error {
		first := seq
		seq += uint64(f.Count)
		return e.handOut(ctx, f.Payload, first, last, from, fn)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return ErrChangesGone
	}
	if found := seq - start; err == nil && found != 0 && found != count {
		return wrongCount(number, found, count)
	}
	return err
}

// LastSeq returns the sequence number of the newest command that readers see.
func (e *Engine) LastSeq() uint64 { return e.visible.Load() }

// NameOf returns the name of a keyspace. That of one which was dropped before this run is empty where the log does not have its creation any
// more.
func (e *Engine) NameOf(id uint32) string {
	if ks := e.keyspaces.known(id); ks != nil {
		return ks.Name
	}
	return e.earlierName(id)
}

// earlierNames are those of the keyspaces that the log tells of. To read all of it takes long, so that is done once, when a name is asked for
// that nobody else knows: that can only be of a keyspace which was dropped before this run.
type earlierNames struct {
	mu    sync.Mutex
	names map[uint32]string // nil until they were read
}

func (e *Engine) earlierName(id uint32) string {
	e.earlier.mu.Lock()
	defer e.earlier.mu.Unlock()
	if e.earlier.names != nil {
		return e.earlier.names[id]
	}
	names, err := e.createdInLog()
	if final(err) {
		e.earlier.names = names
	}
	return names[id]
}

// createdInLog returns the names of the keyspaces whose creation the log has; with an error those that it came to.
func (e *Engine) createdInLog() (map[uint32]string, error) {
	names := map[uint32]string{}
	reader, err := e.log.NewOldestReader()
	if err != nil {
		return names, err
	}
	defer reader.Close()
	reader.Limit(e.visible.Load())
	for {
		_, payload, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return names, err
		}
		d := command.NewDecoder(payload)
		if d.Next() && d.Command().Op == command.CreateKeyspace { // which is alone in its commit
			c := d.Command()
			names[c.Keyspace] = string(c.Key)
		}
	}
}

// LoggedValue reads a value apart that the log refers to. It may be gone when the log is kept for nobody.
func (e *Engine) LoggedValue(encoded []byte) ([]byte, error) {
	s, err := e.Snapshot()
	if err != nil {
		return nil, err
	}
	defer s.Release()
	v, err := e.reads.ReadValue(nil, encoded)
	// The segment leaves the table before its file leaves the directory, so the table is what tells.
	if errors.Is(err, segment.ErrUnknownSegment) {
		return nil, fmt.Errorf("%w: its value was cleaned away; Options.KeepChanges keeps it", ErrChangesGone)
	}
	return v, err
}
