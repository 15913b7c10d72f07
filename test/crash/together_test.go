package crash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// The world of TestCrashTogether: authors write beside each other, each commit of an author bears the next number of his, and all of
// what he has stored follows from the number of his last commit. So whatever a crash leaves can be judged, however the goroutines ran.
const (
	authors   = 3
	slots     = 40  // places that an author writes in turn
	inBulk    = 900 // places that he writes all at once, now and then: more than a batch holds in memory
	bulkEvery = 17
	dropEvery = 6
)

// vector has a number for each author.
type vector [authors]int

// ledger knows what a crash may leave.
type ledger struct {
	mu                              sync.Mutex
	begun, acked, durable           vector
	before                          [authors]map[int]vector // what was acknowledged when a commit began
	full, backups, pictures, faults int
}

func (l *ledger) now() (begun, acked, durable vector) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun, l.acked, l.durable
}

func (l *ledger) count(n *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
}

func (l *ledger) begin(a, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[a] = n
	l.before[a][n] = l.acked
}

func (l *ledger) acknowledge(a, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[a] = n
}

// synced says that everything in v is durable.
func (l *ledger) synced(v vector) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, n := range v {
		l.durable[a] = max(l.durable[a], n)
	}
}

func alone(a, n int) (v vector) {
	v[a] = n
	return v
}

// text is the value that commit n of an author has in one of his places.
func text(a, n, place int) []byte {
	rng := rand.New(rand.NewPCG(uint64(a)<<32|uint64(n), uint64(place)))
	length := rng.IntN(60)
	switch n % 13 {
	case 3:
		length = 100 + rng.IntN(400)
	case 8:
		length = 12000
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	for len(b) < 4+length {
		b = binary.LittleEndian.AppendUint64(b, rng.Uint64())
	}
	return b[:4+length]
}

func place(a, i int) []byte     { return fmt.Appendf(nil, "%d/%02d", a, i) }
func bulkPlace(a, i int) []byte { return fmt.Appendf(nil, "%d/bulk/%04d", a, i) }
func passing(a int) string      { return fmt.Sprint("passing", a) }

// writer is what a Batch and a Tx have in common.
type writer interface {
	Put(key, value []byte) error
}

// compose writes commit n of an author: first is the default keyspace, second and passing are others, passing nil where it has none.
func compose(first, second, passing writer, a, n int) error {
	err := errors.Join(first.Put(place(a, n%slots), text(a, n, n%slots)), first.Put(place(a, slots), text(a, n, slots)),
		second.Put(place(a, slots), text(a, n, slots)))
	if n%bulkEvery == 0 {
		for i := range inBulk {
			err = errors.Join(err, first.Put(bulkPlace(a, i), binary.BigEndian.AppendUint32(make([]byte, 60), uint32(n))))
		}
	}
	if passing != nil {
		err = errors.Join(err, passing.Put(fmt.Appendf(nil, "%06d", n), text(a, n, 0)))
	}
	return err
}

// commitOnce carries out commit n of an author, in one of the ways that there are.
func (w *life) commitOnce(a, n int) error {
	db := w.db
	second, err := db.Keyspace("second", &pando.KeyspaceOptions{Layout: pando.Hash})
	if err != nil {
		return err
	}
	var third *pando.Keyspace
	if n%dropEvery == 0 {
		if err := db.DropKeyspace(passing(a)); err != nil && !errors.Is(err, pando.ErrNotFound) {
			return err
		}
	} else if third, err = db.Keyspace(passing(a), nil); err != nil {
		return err
	}
	w.keep(second)
	w.keep(third)
	inTx := func(tx *pando.Tx) error {
		if third == nil {
			return compose(tx, tx.In(second), nil, a, n)
		}
		return compose(tx, tx.In(second), tx.In(third), a, n)
	}
	switch n % 3 {
	case 0:
		return db.Update(inTx)
	case 1:
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		if err := inTx(tx); err != nil {
			tx.Rollback()
			return err
		}
		return tx.Commit()
	}
	b := db.NewBatch()
	defer b.Reset()
	if third == nil {
		return errors.Join(compose(b, b.In(second), nil, a, n), db.Write(b))
	}
	return errors.Join(compose(b, b.In(second), b.In(third), a, n), db.Write(b))
}

// number is the commit that a value says it is of.
func number(v []byte) int {
	if len(v) < 4 {
		return -1
	}
	return int(binary.BigEndian.Uint32(v))
}

func isThere(got []byte, err error, want []byte, what string, n int) error {
	if n <= 0 && errors.Is(err, pando.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s of commit %d: %w", what, n, err)
	}
	if string(got) != string(want) {
		return fmt.Errorf("%s: %d bytes of commit %d, want %d of %d", what, len(got), number(got), len(want), n)
	}
	return nil
}

// judge reads everything of one picture of the database, and tells the last commit of each author in it. spaces are
// those of the picture: an older handle may be of an earlier keyspace of that name.
func judge(s *pando.Snapshot, spaces map[string]*pando.Keyspace) (vector, error) {
	v, err := judgeLasting(s, spaces["second"])
	for a, n := range v {
		if err == nil {
			if err = judgePassing(s, spaces[passing(a)], a, n); err != nil {
				err = fmt.Errorf("author %d at commit %d: %w", a, n, err)
			}
		}
	}
	return v, err
}

// judgeLasting is judge without what passes.
func judgeLasting(s *pando.Snapshot, second *pando.Keyspace) (vector, error) {
	var v vector
	for a := range authors {
		last, err := s.Get(place(a, slots))
		if err == nil {
			v[a] = number(last)
		} else if !errors.Is(err, pando.ErrNotFound) {
			return v, err
		}
		if err = judgeAuthor(s, second, a, v[a]); err != nil {
			return v, fmt.Errorf("author %d at commit %d: %w", a, v[a], err)
		}
	}
	return v, nil
}

func judgeAuthor(s *pando.Snapshot, second *pando.Keyspace, a, n int) error {
	for i := range slots {
		newest := n - ((n-i)%slots+slots)%slots
		got, err := s.Get(place(a, i))
		if err := isThere(got, err, text(a, newest, i), fmt.Sprint("place ", i), newest); err != nil {
			return err
		}
	}
	if second != nil {
		got, err := s.In(second).Get(place(a, slots))
		if err := isThere(got, err, text(a, n, slots), "the second keyspace", n); err != nil {
			return err
		}
	} else if n > 0 {
		return errors.New("the second keyspace is missing")
	}
	bulk := n - n%bulkEvery
	found := 0
	for k, v := range s.Prefix(fmt.Appendf(nil, "%d/bulk/", a)) {
		if len(v) != 64 || int(binary.BigEndian.Uint32(v[60:])) != bulk {
			return fmt.Errorf("%s is not of commit %d", k, bulk)
		}
		found++
	}
	if err := s.Err(); err != nil {
		return err
	}
	if bulk > 0 && found != inBulk {
		return fmt.Errorf("%d places of the bulk of commit %d, want %d", found, bulk, inBulk)
	}
	return nil
}

// judgePassing looks at the keyspace that an author drops and creates: the next commit may have begun with that.
func judgePassing(s *pando.Snapshot, ks *pando.Keyspace, a, n int) error {
	first := n - n%dropEvery + 1
	if ks == nil {
		if n%dropEvery == 0 || n%dropEvery == dropEvery-1 {
			return nil
		}
		return errors.New("the passing keyspace is missing")
	}
	it := s.In(ks).Iter(nil)
	defer it.Close()
	for next := first; ; next++ {
		if !it.Next() {
			if it.Err() != nil {
				return it.Err()
			}
			if next != n+1 && n%dropEvery != 0 {
				return fmt.Errorf("the passing keyspace ends before commit %d", next)
			}
			return nil
		}
		if string(it.Key()) != fmt.Sprintf("%06d", next) || next > n || string(it.Value()) != string(text(a, next, 0)) {
			return fmt.Errorf("the passing keyspace has %s where %d belongs", it.Key(), next)
		}
	}
}

// handles opens the keyspaces that there are.
func handles(db *pando.DB) (map[string]*pando.Keyspace, error) {
	infos, err := db.Keyspaces()
	spaces := map[string]*pando.Keyspace{}
	for _, info := range infos {
		if info.Name == "" {
			continue
		}
		ks, e := db.Keyspace(info.Name, nil)
		err = errors.Join(err, e)
		spaces[info.Name] = ks
	}
	return spaces, err
}

// legal compares what was found with what a crash may leave.
func (l *ledger) legal(got, least, most vector) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, n := range got {
		if n < least[a] || n > most[a] {
			return fmt.Errorf("author %d is at commit %d, want %d to %d", a, n, least[a], most[a])
		}
		if n == 0 {
			continue
		}
		for b, m := range l.before[a][n] {
			if got[b] < m {
				return fmt.Errorf("commit %d of author %d is there, and commit %d of author %d, which came before it, is not", n, a, m, b)
			}
		}
	}
	return nil
}

// life runs authors and maintenance on a file system until each author has written some commits, with the disk full now and then.
type life struct {
	t       *testing.T
	db      *pando.DB
	base    *memfs.FS
	l       *ledger
	done    chan struct{}
	profile pando.Profile
	fragile bool // some call fails

	mu     sync.Mutex
	spaces map[string]*pando.Keyspace
}

// broke reports whether err comes of the call that a life may end with. A checkpoint may fail once before all is refused.
func (w *life) broke(err error) bool {
	return w.fragile && (errors.Is(err, faultfs.ErrInjected) || errors.Is(err, pando.ErrFailed))
}

func (w *life) author(a, commits int) {
	_, acked, _ := w.l.now()
	for n := acked[a] + 1; n <= acked[a]+commits; n++ {
		w.l.begin(a, n)
		for {
			err := w.commitOnce(a, n)
			if err == nil {
				break
			}
			if w.broke(err) {
				return
			} else if errors.Is(err, pando.ErrDiskFull) {
				w.l.count(&w.l.full)
				w.base.SetCapacity(0)
			} else if !errors.Is(err, pando.ErrConflict) && !errors.Is(err, pando.ErrDropped) {
				w.t.Errorf("author %d, commit %d: %v", a, n, err)
				return
			}
		}
		w.l.acknowledge(a, n)
		if w.profile == pando.Durable {
			w.l.synced(alone(a, n))
		}
	}
}

// caretaker does everything else until the authors are done.
func (w *life) caretaker(rng *rand.Rand) {
	ctx := context.Background()
	for {
		select {
		case <-w.done:
			return
		default:
		}
		_, acked, _ := w.l.now()
		var err error
		durable := true
		switch rng.IntN(6) {
		case 0:
			err = w.db.Checkpoint(ctx)
		case 1:
			err = w.db.Compact(ctx, pando.CompactOptions{Compression: pando.Compression(rng.IntN(4))})
		case 2:
			if err = w.db.Backup(ctx, "backup"); err == nil {
				err = w.backup(acked)
			}
		case 3:
			err = w.db.Sync()
		case 4:
			durable = false
			err = w.picture(rng)
		case 5:
			durable = false
			w.base.SetCapacity(w.base.Used() + int64(rng.IntN(300<<10)))
		}
		if w.broke(err) {
			return
		} else if errors.Is(err, pando.ErrDiskFull) {
			w.l.count(&w.l.full)
			w.base.SetCapacity(0)
		} else if err != nil {
			w.t.Errorf("caretaker: %v", err)
			return
		} else if durable {
			w.l.synced(acked)
		}
	}
}

// backup opens the backup that was just made, on a copy of the file system.
func (w *life) backup(least vector) error {
	begun, _, _ := w.l.now() // after the copy
	w.l.count(&w.l.backups)
	o := togetherOptions(w.profile)
	o.FS, o.ReadOnly = w.base.KillImage(), true
	db, err := pando.Open("backup", o)
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	_, err = w.l.look(db, least, begun)
	return errors.Join(err, db.Close())
}

// picture holds a snapshot and iterators while others write, settle, and drop what they read.
func (w *life) picture(rng *rand.Rand) error {
	w.l.count(&w.l.pictures)
	w.mu.Lock()
	spaces := maps.Clone(w.spaces)
	w.mu.Unlock()
	if spaces["second"] == nil {
		return nil // nobody has written yet
	}
	s := w.db.Snapshot()
	defer s.Close()
	first, err := judgeLasting(s, spaces["second"])
	var open []*pando.Iterator
	var counts []int64
	for _, ks := range spaces {
		n, e := s.In(ks).Count(nil, nil)
		it := s.In(ks).Iter(nil)
		it.Next()
		if errors.Is(e, pando.ErrDropped) { // before the snapshot, so for all of it
			if !errors.Is(it.Err(), pando.ErrDropped) {
				e = fmt.Errorf("a count says %w, an iterator %v", e, it.Err())
			} else {
				e = nil
			}
			err = errors.Join(err, e, it.Close())
			continue
		}
		open, counts, err = append(open, it), append(counts, n), errors.Join(err, e)
	}
	if rng.IntN(2) == 0 {
		if e := w.db.Checkpoint(context.Background()); !errors.Is(e, pando.ErrDiskFull) {
			err = errors.Join(err, e)
		}
	}
	second, e := judgeLasting(s, spaces["second"])
	if err = errors.Join(err, e); err == nil && first != second {
		err = fmt.Errorf("a snapshot moved from %v to %v", first, second)
	}
	for i, it := range open {
		n := int64(0)
		for ok := it.Valid(); ok; ok = it.Next() {
			n++
		}
		if err = errors.Join(err, it.Err(), it.Close()); n != counts[i] {
			err = errors.Join(err, fmt.Errorf("an iterator of a snapshot meets %d pairs of %d", n, counts[i]))
		}
	}
	return err
}

// keep notes the handle that an author made of a keyspace.
func (w *life) keep(ks *pando.Keyspace) {
	if ks != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.spaces[ks.Name()] = ks
	}
}

// look judges an open database.
func (l *ledger) look(db *pando.DB, least, most vector) (vector, error) {
	spaces, err := handles(db)
	if err != nil {
		return vector{}, err
	}
	s := db.Snapshot()
	defer s.Close()
	got, err := judge(s, spaces)
	if err == nil {
		err = l.legal(got, least, most)
	}
	return got, err
}
