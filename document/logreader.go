package document

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
)

// logged is a change in the storage's log of which change streams and the oplog tell.
type logged struct {
	seq    uint64
	op     operation
	time   uint64      // they grow from one to the next, whatever concurrent commits say; those of a transaction have one
	noted  uint64      // the time that its note says
	c      *collection // nil where it is not of a document
	ns     namespace   // as the collection was called then
	id     bsoncore.Value
	record []byte   // the document afterwards, as it is stored; nil where there is none
	image  document // the document before, where the collection keeps it
	doc    document // the diff of an update; a command; what a no-op says
}

// committed is what one commit did, or a part of it when it is large.
type committed struct {
	changes     []logged
	seq         uint64 // of its last change in the log
	first, last bool   // parts of the commit
	transaction bool
	count       int     // of changes in the commit so far
	session     string  // whose commit it is, where that is known
	number      int64   // of the write or transaction in the session
	statements  []int64 // of the changes, at the end; fewer when not all are known
	size        int     // in bytes, about
	time        uint64  // of its last change
	noted       uint64  // the time that the newest note says, of this commit or an earlier one
}

// logReader makes commits of the changes in the storage's log, one after the other.
type logReader struct {
	store   *Store
	deliver func(ctx context.Context, c *committed) error
	skim    bool   // only the times of the changes are wanted
	begin   uint64 // of changes before, too
	told    uint64 // and of this one, unless it is a command

	time    uint64 // of the newest change
	noted   uint64 // the time that the newest note says
	now     committed
	record  []byte // what was stored last: a note about it follows
	image   []byte // pieces of the document before, so far
	diff    []byte // pieces of a long diff or command, so far
	touched bool   // part of the commit was delivered already
	moment  uint64 // of a transaction's commit
}

// maxPart is about how much of a commit is delivered at once: an entry of the oplog has to hold that of a transaction.
const maxPart = 12 << 20

// take looks at one change.
func (r *logReader) take(ctx context.Context, c pando.Change) error {
	rest, ours := strings.CutPrefix(c.Keyspace, metaKeyspace)
	ours = ours && (rest == "" || rest[0] == '/')
	var err error
	switch {
	case c.Kind == pando.ChangePut && ours && rest == "":
		err = r.session(c)
	case c.Kind == pando.ChangePut && (ours || c.Keyspace == ""): // the name of one that was dropped may be forgotten
		r.record = append(r.record[:0], c.Value...)
	case c.Kind == pando.ChangeNote && ours && rest == "":
		err = r.note(c)
	}
	if err != nil {
		return fmt.Errorf("change %d: %w", c.Seq, err)
	}
	if r.now.size > maxPart || c.Last {
		return r.flush(ctx, c)
	}
	return nil
}

// flush delivers what there is of the commit.
func (r *logReader) flush(ctx context.Context, c pando.Change) error {
	n := &r.now
	n.seq, n.first, n.last = c.Seq, !r.touched, c.Last
	if n.transaction && len(n.changes) > 0 {
		r.time = max(r.time+1, r.moment, n.changes[len(n.changes)-1].time)
		for i := range n.changes {
			n.changes[i].time = r.time
		}
	}
	n.time, n.noted = r.time, r.noted
	err := r.deliver(ctx, n)
	if r.touched = !c.Last; c.Last {
		*n, r.moment = committed{changes: n.changes[:0]}, 0
	} else {
		n.changes, n.size, n.statements = n.changes[:0], 0, nil
	}
	return err
}

// note looks at a note.
func (r *logReader) note(c pando.Change) error {
	if len(c.Value) == 0 {
		return fmt.Errorf("%w: an empty note", pando.ErrCorrupt)
	}
	op, note := operation(c.Value[0]), c.Value[1:]
	switch op {
	case opImage:
		r.image = append(r.image, note...)
		return nil
	case opDiff:
		r.diff = append(r.diff, note...)
		return nil
	}
	if len(note) < 8 {
		return fmt.Errorf("%w: a note of %d bytes", pando.ErrCorrupt, len(note))
	}
	time, note := binary.BigEndian.Uint64(note), note[8:]
	r.noted = time
	switch op {
	case opTransaction:
		return r.transaction(note)
	case opCommit:
		r.moment = time
		return nil
	}
	if !r.now.transaction {
		r.time = max(r.time+1, time)
		time = r.time
	}
	l := logged{seq: c.Seq, op: op, time: time, noted: r.noted}
	r.now.size += len(c.Value) + len(r.record) + len(r.image) + len(r.diff)
	r.now.count++
	var err error
	if !r.skim && c.Seq >= r.begin && (c.Seq != r.told || op == opCommand) {
		err = r.read(&l, note)
	}
	r.now.changes = append(r.now.changes, l)
	r.image, r.diff, r.record = r.image[:0], r.diff[:0], r.record[:0]
	return err
}

// transaction reads the first note of a transaction.
func (r *logReader) transaction(note []byte) error {
	r.now.transaction = true
	if len(note) == 0 {
		return nil
	}
	number, n := binary.Varint(note)
	if n <= 0 {
		return fmt.Errorf("%w: a transaction without a number", pando.ErrCorrupt)
	}
	r.now.number, r.now.session = number, string(note[n:])
	return nil
}

// session reads the record of a session, which says whose write the commit is.
func (r *logReader) session(c pando.Change) error {
	if len(c.Key) == 0 || c.Key[0] != sessionKey || r.skim || r.now.transaction {
		return nil
	}
	number, n := binary.Varint(c.Value)
	if n <= 0 {
		return fmt.Errorf("record of a session: %w", pando.ErrCorrupt)
	}
	r.now.number, r.now.session = number, string(c.Key[1:])
	var err error
	r.now.statements, err = newestStatements(c.Value[n:], len(r.now.changes))
	return err
}

// read reads the rest of a note.
func (r *logReader) read(l *logged, note []byte) error {
	switch l.op {
	case opInsert, opUpdate, opReplace, opDelete:
		return r.readChange(l, note)
	case opCommand, opNoop:
		l.doc = slices.Concat(r.diff, note)
		if !codec.Sound(l.doc) {
			return fmt.Errorf("%w: a note that cannot be read", pando.ErrCorrupt)
		}
		return nil
	}
	return fmt.Errorf("%w: a note of unknown kind %q", pando.ErrCorrupt, byte(l.op))
}

// readChange reads the rest of the note of a changed document.
func (r *logReader) readChange(l *logged, note []byte) error {
	number, n := binary.Uvarint(note)
	if n <= 0 || number > 1<<32-1 {
		return fmt.Errorf("%w: a note that cannot be read", pando.ErrCorrupt)
	}
	note = note[n:]
	length, n := binary.Uvarint(note)
	if n <= 0 || length+1 > uint64(len(note)-n) || length > pando.MaxKeyBytes {
		return fmt.Errorf("%w: a note that cannot be read", pando.ErrCorrupt)
	}
	note = slices.Clone(note[n:])
	l.id = bsoncore.Value{Type: bsoncore.Type(note[0]), Data: note[1 : 1+length]}
	if !codec.SoundValue(l.id) {
		return fmt.Errorf("%w: a note of an _id that cannot be read", pando.ErrCorrupt)
	}
	if l.op == opUpdate {
		l.doc = document(note[1+length:])
		if len(r.diff) > 0 {
			l.doc = slices.Clone(r.diff)
		}
		if !codec.Sound(l.doc) {
			return fmt.Errorf("%w: a diff that cannot be read", pando.ErrCorrupt)
		}
	}
	if l.op != opDelete {
		l.record = slices.Clone(r.record)
	}
	if len(r.image) > 0 {
		if l.image = slices.Clone(r.image); !codec.Sound(l.image) {
			return fmt.Errorf("%w: a document before its change that cannot be read", pando.ErrCorrupt)
		}
	}
	var err error
	if l.c, err = r.store.collectionOf(uint32(number)); err != nil {
		return err
	}
	l.ns = l.c.nameAt(l.seq)
	return nil
}

// document decodes the document after the change.
func (l *logged) document() (document, error) { return l.c.codec.Decode(nil, l.record) }

// newestStatements returns the last n statements in the record of a session, fewer if there are fewer.
func newestStatements(entries []byte, n int) ([]int64, error) {
	var list []int64
	for len(entries) > 0 {
		kind, d := entries[0], entryReader{rest: entries[1:]}
		switch kind {
		case entryInserts:
			first, last := d.number(), d.number()
			if last > math.MaxInt32 { // no client can number its statements so, and behind the last number comes the first
				return nil, fmt.Errorf("record of a session: %w: a run up to statement %d", pando.ErrCorrupt, last)
			}
			for id := max(first, last-int64(n)+1); id <= last && d.err == nil; id++ {
				list = append(list, id)
			}
		case entryOther:
			list = append(list, d.number())
			d.number()
			d.number()
			d.bytes(1)
			d.bytes(d.number())
			d.bytes(d.number())
		case entryTransaction:
			return nil, nil // it stands alone, and for no statements
		default:
			d.err = fmt.Errorf("record of a session: %w: entry of kind %d", pando.ErrCorrupt, kind)
		}
		if d.err != nil {
			return nil, d.err
		}
		entries = d.rest
	}
	return list[max(0, len(list)-n):], nil
}
