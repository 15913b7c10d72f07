package engines

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/pandodb/pando/bench/engine"
)

var errGivenUp = errors.New("given up")

// transactions checks an adapter whose engine has them: keys 0, 2, 4, ... are there.
func transactions(t *testing.T, d engine.Driver, s engine.Store) {
	t.Helper()
	tr, ok := s.(engine.Transactor)
	if !ok {
		t.Error("no transactions")
		return
	}
	if err := tr.View(func(engine.Reader) error { return nil }); errors.Is(err, engine.ErrUnsupported) {
		if err := tr.Update(func(engine.Transaction) error { return nil }); !errors.Is(err, engine.ErrUnsupported) {
			t.Errorf("update where there is no view: %v", err)
		}
		return
	}
	must(t, s.Put(key(4), value(2)))
	viewOfOneMoment(t, d, s, tr)
	updateThatIsGivenUp(t, d, s, tr)
	updateThatCommits(t, d, s, tr)
	updatesAtOnce(t, s, tr)
}

// has checks what a get of a key shows; nil: nothing.
func has(t *testing.T, when string, r engine.Reader, k int, want []byte) {
	t.Helper()
	v, found, err := r.Get([]byte("dst"), key(k))
	if err != nil || found != (want != nil) || found && string(v) != "dst"+string(want) {
		t.Errorf("%s: get of key %d: %q, %v, %v, want %q", when, k, v, found, err, want)
	}
	if found, err := r.Has(key(k)); err != nil || found != (want != nil) {
		t.Errorf("%s: has of key %d: %v, %v", when, k, found, err)
	}
}

func viewOfOneMoment(t *testing.T, d engine.Driver, s engine.Store, tr engine.Transactor) {
	t.Helper()
	must(t, tr.View(func(r engine.Reader) error {
		has(t, "view", r, 4, value(2))
		if !d.BlocksWriters {
			must(t, s.Put(key(4), []byte("later")))
			must(t, s.Put(key(5), []byte("later")))
		}
		has(t, "view after a write", r, 4, value(2))
		has(t, "view after a write", r, 5, nil)
		if !d.NoOrder {
			if got, want := collect(t, r, engine.Scan{From: key(4), Limit: 2}), []string{"key-0004", "key-0006"}; !slices.Equal(got, want) {
				t.Errorf("view after a write: scan shows %v", got)
			}
		} else if err := r.Scan(engine.Scan{}, nil); !errors.Is(err, engine.ErrUnsupported) {
			t.Errorf("view: scan without order: %v", err)
		}
		return nil
	}))
	if err := tr.View(func(engine.Reader) error { return errGivenUp }); !errors.Is(err, errGivenUp) {
		t.Errorf("view that fails: %v", err)
	}
	must(t, s.Put(key(4), value(2)))
	if !d.BlocksWriters {
		must(t, s.Delete(key(5)))
	}
}

// change puts over key 4, puts key 5 anew, deletes key 6, and deletes what is not there; the transaction has to show that.
func change(t *testing.T, d engine.Driver, s engine.Store, tx engine.Transaction) {
	t.Helper()
	has(t, "update before a write", tx, 4, value(2))
	must(t, tx.Put(key(4), []byte("first")))
	has(t, "update", tx, 4, []byte("first"))
	must(t, tx.Put(key(4), []byte("own")))
	must(t, tx.Put(key(5), []byte("new")))
	must(t, tx.Delete(key(6)))
	must(t, tx.Delete(key(7)))
	must(t, tx.Put(key(9), []byte("gone")))
	must(t, tx.Delete(key(9)))
	changed(t, "update", d, tx)
	if !d.BlocksWriters { // readers wait there too, for the update in which they are
		unchanged(t, "outside of an update", d, s)
	}
}

func changed(t *testing.T, when string, d engine.Driver, r engine.Reader) {
	t.Helper()
	has(t, when, r, 4, []byte("own"))
	has(t, when, r, 5, []byte("new"))
	has(t, when, r, 6, nil)
	has(t, when, r, 7, nil)
	has(t, when, r, 8, value(4))
	has(t, when, r, 9, nil)
	walks(t, when, d, r, []byte("own"), []string{"key-0004", "key-0005", "key-0008", "key-0010"})
}

func unchanged(t *testing.T, when string, d engine.Driver, r engine.Reader) {
	t.Helper()
	has(t, when, r, 4, value(2))
	has(t, when, r, 5, nil)
	has(t, when, r, 6, value(3))
	has(t, when, r, 9, nil)
	walks(t, when, d, r, value(2), []string{"key-0004", "key-0006", "key-0008", "key-0010"})
}

// walks checks the records from key 4 to key 10 in both directions, and the value of the first. An engine whose walks do not show what the update has written has
// to say so.
func walks(t *testing.T, when string, d engine.Driver, r engine.Reader, first []byte, want []string) {
	t.Helper()
	var got []string
	err := r.Scan(engine.Scan{From: key(4), Limit: len(want)}, func(k, v []byte) bool {
		if len(got) == 0 && !bytes.Equal(v, first) {
			t.Errorf("%s: the scan shows %q of key 4", when, v)
		}
		got = append(got, string(k))
		return true
	})
	if errors.Is(err, engine.ErrUnsupported) && (d.NoOrder || d.Name == "nutsdb" && when == "update") {
		return
	}
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("%s: the scan shows %v, want %v", when, got, want)
	}
	back := collect(t, r, engine.Scan{From: key(10), Limit: len(want), Reverse: true})
	slices.Reverse(back)
	if !slices.Equal(back, want) {
		t.Errorf("%s: the scan backwards shows %v, want %v", when, back, want)
	}
}

func updateThatIsGivenUp(t *testing.T, d engine.Driver, s engine.Store, tr engine.Transactor) {
	t.Helper()
	err := tr.Update(func(tx engine.Transaction) error {
		change(t, d, s, tx)
		return errGivenUp
	})
	if !errors.Is(err, errGivenUp) {
		t.Errorf("update that fails: %v", err)
	}
	unchanged(t, "after an update that failed", d, s)
}

func updateThatCommits(t *testing.T, d engine.Driver, s engine.Store, tr engine.Transactor) {
	t.Helper()
	must(t, tr.Update(func(tx engine.Transaction) error {
		change(t, d, s, tx)
		return nil
	}))
	changed(t, "after an update", d, s)
	must(t, tr.View(func(r engine.Reader) error {
		changed(t, "view after an update", d, r)
		return nil
	}))
	must(t, tr.Update(func(tx engine.Transaction) error { // as it was
		return errors.Join(tx.Put(key(4), value(2)), tx.Delete(key(5)), tx.Put(key(6), value(3)))
	}))
	unchanged(t, "after another update", d, s)
}

// updatesAtOnce count together: an update that goes by what another one has changed meanwhile would lose its count.
func updatesAtOnce(t *testing.T, s engine.Store, tr engine.Transactor) {
	t.Helper()
	const goroutines, each = 4, 10
	counter := []byte("counter")
	must(t, s.Put(counter, []byte{0}))
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				err := tr.Update(func(tx engine.Transaction) error {
					v, _, err := tx.Get(nil, counter)
					if err != nil {
						return err
					}
					return tx.Put(counter, []byte{v[0] + 1})
				})
				if err != nil {
					t.Errorf("updates at once: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if v, _, err := s.Get(nil, counter); err != nil || len(v) != 1 || v[0] != goroutines*each {
		t.Errorf("updates at once: counted %v, %v, want %d", v, err, goroutines*each)
	}
	must(t, s.Delete(counter))
}
