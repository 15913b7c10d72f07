package pando

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pandodb/pando/internal/command"
)

// ChangeKind says what a change did.
type ChangeKind uint8

const (
	ChangePut         ChangeKind = iota + 1 // Key has Value now
	ChangeDelete                            // Key is gone
	ChangeDeleteRange                       // the keys in [Key, End) are gone; a nil End is open
	ChangeCreate                            // Keyspace was created
	ChangeDrop                              // Keyspace was dropped
	ChangeNote                              // nothing changed; Value is what a Note of the batch or transaction says
)

// String returns a word for the kind, such as "put" or "deleteRange".
func (k ChangeKind) String() string {
	switch k {
	case ChangePut:
		return "put"
	case ChangeDelete:
		return "delete"
	case ChangeDeleteRange:
		return "deleteRange"
	case ChangeCreate:
		return "create"
	case ChangeDrop:
		return "drop"
	case ChangeNote:
		return "note"
	}
	return fmt.Sprintf("change %d", uint8(k))
}

// Change is one committed change. Its slices are valid until the next one.
type Change struct {
	Seq      uint64 // grows from change to change; pass Seq+1 to Changes to go on behind it
	Kind     ChangeKind
	Keyspace string // empty for one that was dropped in an earlier run and whose creation is not kept any more
	Key      []byte
	Value    []byte
	End      []byte
	Expires  time.Time // zero: never
	Last     bool      // the last change of its commit
}

// ChangesOptions says where a feed starts and ends.
type ChangesOptions struct {
	From   uint64 // the first sequence number wanted; 0 and 1 are the beginning
	Follow bool   // wait for further commits instead of ending at the newest one when the loop began
}

// Changes walks over every committed change in commit order. With Follow it goes on until ctx is done or the database closes.
//
// It reads the log, so it reaches back as far as Options.KeepChanges has it kept. Where the start has been recycled the loop gets
// ErrChangesGone, and a reader who needs everything starts again from a Snapshot; with Follow also where the start lies behind the
// next change, because a power cut took what was read before, or a backup was restored. So it is where the loop comes to what was written
// with the Bench profile, of which there is no log. A loop that ends with an error gets it as
// its last step: this one, ctx's, ErrClosed, ErrCorrupt, or, from a database that is opened with ReadOnly, ErrReadOnly.
//
//	for c, err := range db.Changes(ctx, pando.ChangesOptions{From: last + 1, Follow: true}) {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (db *DB) Changes(ctx context.Context, o ChangesOptions) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		stopped := errors.New("the loop was left")
		err := db.e.Changes(ctx, max(o.From, 1), o.Follow, func(seq uint64, last bool, c command.Command) error {
			change, ok, err := db.change(c)
			if err != nil || !ok {
				return err
			}
			change.Seq, change.Last = seq, last
			if !yield(change, nil) {
				return stopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(Change{}, fmt.Errorf("changes from %d: %w", o.From, err))
		}
	}
}

// OldestChange returns the sequence number from which on Changes can be asked at present; when nothing has been kept it is that of
// the next change.
func (db *DB) OldestChange() uint64 { return db.e.OldestChange() }

// LastSeq returns the sequence number of the newest change that readers see. There need not be a change with that number: the database puts
// commands into its log of which Changes tells nothing. To read what there is, let Changes come to its end without Follow.
func (db *DB) LastSeq() uint64 { return db.e.LastSeq() }

// change translates a command of the log. Commands that change nothing a user sees are left out.
func (db *DB) change(c command.Command) (Change, bool, error) {
	out := Change{Key: c.Key}
	if c.Expiry != 0 {
		out.Expires = time.UnixMilli(int64(c.Expiry))
	}
	switch c.Op {
	case command.Put:
		out.Kind, out.Value = ChangePut, c.Value
	case command.PutApart:
		v, err := db.e.LoggedValue(c.Value)
		if err != nil {
			return out, false, err
		}
		out.Kind, out.Value = ChangePut, v
	case command.Delete:
		out.Kind = ChangeDelete
	case command.DeleteRange:
		out.Kind, out.End = ChangeDeleteRange, c.Value
	case command.CreateKeyspace:
		out.Kind, out.Keyspace, out.Key = ChangeCreate, string(c.Key), nil
		return out, true, nil
	case command.DropKeyspace:
		out.Kind = ChangeDrop
	case command.Note:
		out.Kind, out.Value, out.Key = ChangeNote, c.Key, nil
	default:
		return out, false, nil
	}
	out.Keyspace = db.e.NameOf(c.Keyspace)
	return out, true, nil
}
