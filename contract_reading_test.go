package pando

import (
	"errors"
	"fmt"
	"iter"
	"testing"
)

// readingMethods is what everything that reads has in common.
type readingMethods interface {
	Get(key []byte) ([]byte, error)
	GetTo(dst, key []byte) ([]byte, error)
	Has(key []byte) (bool, error)
	Iter(o *IterOptions) *Iterator
	Range(lo, hi []byte) iter.Seq2[[]byte, []byte]
	RangeReverse(lo, hi []byte) iter.Seq2[[]byte, []byte]
	Prefix(p []byte) iter.Seq2[[]byte, []byte]
	Count(lo, hi []byte) (int64, error)
	Nth(lo, hi []byte, n int64) (key, value []byte, err error)
	Err() error
}

// readers calls test with everything that reads the default keyspace of db, which fill has filled: at the end with a transaction
// that has written all of it itself, over what was there.
func readers(t *testing.T, db *DB, fill func(put func(key, value []byte) error), test func(name string, r readingMethods)) {
	t.Helper()
	other, err := db.Keyspace("other", nil)
	must(t, err)
	test("DB", db)
	test("Keyspace", db.Default())
	s := db.Snapshot()
	defer s.Close()
	test("Snapshot", s)
	test("Snapshot.In", s.In(other).In(db.Default()))
	for _, writable := range []bool{false, true} {
		tx, err := db.Begin(writable)
		must(t, err)
		defer tx.Rollback()
		test(fmt.Sprintf("Begin(%t)", writable), tx)
		test(fmt.Sprintf("Begin(%t).In", writable), tx.In(other).In(db.Default()))
		test(fmt.Sprintf("Begin(%t).Unchecked", writable), tx.Unchecked())
	}
	must(t, db.View(func(tx *Tx) error { test("View", tx); return nil }))
	must(t, db.Update(func(tx *Tx) error { test("Update", tx); return nil }))
	own, err := db.Begin(true)
	must(t, err)
	defer own.Rollback()
	must(t, own.Put([]byte("000"), []byte("goes with the rest")))
	must(t, own.DeleteRange(nil, nil))
	fill(own.Put)
	test("own writes", own)
}

// pairsOf returns the pairs of a walk as text.
func pairsOf(walk iter.Seq2[[]byte, []byte]) string {
	var s []byte
	for k, v := range walk {
		s = fmt.Appendf(s, " %s=%s", k, v)
	}
	return string(s)
}

// Whoever reads gives the same answers to the same questions, wherever the data lies.
func TestReadersAgree(t *testing.T) {
	fill := func(put func(key, value []byte) error, from, to int) {
		for i := from; i < to; i++ {
			must(t, put(fmt.Appendf(nil, "%02d", i), fmt.Appendf(nil, "v%d", i)))
		}
	}
	stored := func(db *DB, from, to int) { fill(db.Put, from, to) }
	again := func(put func(key, value []byte) error) { fill(put, 0, 100) }
	states(t, stored, func(t *testing.T, db *DB) {
		readers(t, db, again, func(name string, r readingMethods) {
			check := func(what, got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %s: %s, want %s", name, what, got, want)
				}
			}
			v, err := r.Get([]byte("07"))
			check("Get", fmt.Sprintf("%s %v", v, err), "v7 <nil>")
			v, err = r.GetTo([]byte("x"), []byte("07"))
			check("GetTo", fmt.Sprintf("%s %v", v, err), "xv7 <nil>")
			v, err = r.GetTo([]byte("x"), []byte("no"))
			check("GetTo of no key", fmt.Sprintf("%s %t", v, errors.Is(err, ErrNotFound)), "x true")
			there, err := r.Has([]byte("07"))
			check("Has", fmt.Sprint(there, err), "true <nil>")
			there, err = r.Has([]byte("no"))
			check("Has of no key", fmt.Sprint(there, err), "false <nil>")
			check("Range", pairsOf(r.Range([]byte("48"), []byte("52"))), " 48=v48 49=v49 50=v50 51=v51")
			check("Range of an open start", pairsOf(r.Range(nil, []byte("02"))), " 00=v0 01=v1")
			check("Range of bounds the wrong way round", pairsOf(r.Range([]byte("52"), []byte("48"))), "")
			check("RangeReverse", pairsOf(r.RangeReverse([]byte("97"), nil)), " 99=v99 98=v98 97=v97")
			check("Prefix", pairsOf(r.Prefix([]byte("5"))), pairsOf(r.Range([]byte("50"), []byte("60"))))
			check("Prefix of nothing", pairsOf(r.Prefix([]byte("x"))), "")
			n, err := r.Count([]byte("10"), []byte("90"))
			check("Count", fmt.Sprint(n, err), "80 <nil>")
			k, v, err := r.Nth([]byte("10"), nil, 45)
			check("Nth", fmt.Sprintf("%s=%s %v", k, v, err), "55=v55 <nil>")
			for _, behind := range []int64{-1, 90} {
				_, _, err = r.Nth([]byte("10"), nil, behind)
				check("Nth of what is not there", fmt.Sprint(errors.Is(err, ErrNotFound)), "true")
			}
			it := r.Iter(&IterOptions{Lower: []byte("30"), KeysOnly: true})
			check("Iter", fmt.Sprintf("%t %s %v", it.Next(), it.Key(), it.Value()), "true 30 []")
			must(t, it.Close())
			must(t, r.Err())
		})
	})
}
