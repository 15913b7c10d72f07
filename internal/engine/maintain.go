package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/view"
)

// Damage is told to the callback of Check: what, and where.
type Damage struct {
	Keyspace string // empty: the damage concerns the whole database
	Err      error
}

// CheckReport sums a check up.
type CheckReport struct {
	Keyspaces, Blobs, Bytes int64
}

// Check reads and verifies everything that readers can reach, and reports each damage.
func (e *Engine) Check(ctx context.Context, report func(Damage)) (CheckReport, error) {
	var sum CheckReport
	if err := e.enter(); err != nil {
		return sum, err
	}
	defer e.leave()
	s, err := e.Snapshot()
	if err != nil {
		return sum, err
	}
	defer s.Release()
	if e.root.Damaged() {
		report(Damage{Err: corrupt.New(root.Name, 0, 0, "one of the two root slots does not verify; the next checkpoint repairs it")})
	}
	for _, err := range e.store.Damage() {
		report(Damage{Err: err})
	}
	meter := progress.From(ctx)
	meter.Begin(recordsUnder(s, e.Keyspaces()))
	for _, ks := range e.Keyspaces() {
		sum.Keyspaces++
		if err := e.checkKeyspace(ctx, s, ks, &sum, func(err error) { report(Damage{Keyspace: ks.Name, Err: err}) }); err != nil {
			return sum, fmt.Errorf("check keyspace %q: %w", ks.Name, err)
		}
	}
	meter.End()
	if err := e.checkChanges(ctx, func(err error) { report(Damage{Err: fmt.Errorf("changes: %w", err)}) }); err != nil {
		return sum, fmt.Errorf("check changes: %w", err)
	}
	return sum, nil
}

// checkChanges reads what is kept for the change feed: the log, and what lies apart of it. Most of the log is older than what was replayed, so
// that nobody has read it since it was written.
func (e *Engine) checkChanges(ctx context.Context, report func(error)) error {
	if e.log == nil || e.o.KeepChanges == 0 {
		return nil
	}
	err := e.Changes(ctx, e.OldestChange(), false, func(seq uint64, _ bool, c command.Command) error {
		if c.Op != command.PutApart {
			return nil
		}
		err := e.checkValue(c.Value)
		if errors.Is(err, segment.ErrUnknownSegment) { // the log goes first, but not while it is read
			return nil
		}
		if isDamage(err) {
			report(fmt.Errorf("change %d: %w", seq, err))
			return nil
		}
		return err
	})
	switch {
	case isDamage(err):
		report(err)
		return nil
	case errors.Is(err, ErrChangesGone): // since it was asked how far back they go
		return nil
	}
	return err
}

// isDamage reports whether an error tells of what cannot be read.
func isDamage(err error) bool {
	return errors.Is(err, corrupt.Err) || errors.Is(err, segment.ErrUnreadable)
}

// recordsUnder is about how many settled records keyspaces have.
func recordsUnder(s Snapshot, list []*Keyspace) (total int64) {
	for _, ks := range list {
		if r := s.View.Root(ks.ID); r != nil {
			n, _ := r.Records()
			total += n
		}
	}
	return total
}

// checkKeyspace checks what has settled, values apart included, counts its blobs, and checks the values of what has not.
func (e *Engine) checkKeyspace(ctx context.Context, s Snapshot, ks *Keyspace, sum *CheckReport, report func(error)) error {
	changes := view.NewChanges(s.View.Tables, ks.ID, s.Seq)
	for changes.Next() {
		c := changes.Change()
		if c.Record.Kind != record.Apart {
			continue
		}
		if err := e.checkValue(c.Record.Value); err != nil {
			report(fmt.Errorf("key %x: %w", c.Key, err))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	r := s.View.Root(ks.ID)
	if r == nil {
		return nil
	}
	l := e.layouts[ks.Layout]
	if err := l.Check(ctx, r, report); err != nil {
		return err
	}
	err := l.Walk(ctx, r, func(p segment.Pointer, _ segment.Kind) error {
		sum.Blobs++
		sum.Bytes += int64(p.Length)
		return nil
	})
	if isDamage(err) {
		return nil // which was reported; what lies behind it is not counted
	}
	return err
}

// checkValue reads all of a value apart.
func (e *Engine) checkValue(encoded []byte) error {
	ref, err := value.DecodeRef(encoded)
	if err != nil {
		return err
	}
	return value.Verify(e.store, ref)
}
