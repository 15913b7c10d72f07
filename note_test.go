package pando_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A note travels with its commit through the log, whole or not at all, and changes nothing.
func TestNotesAreToldToThoseWhoReadChanges(t *testing.T) {
	fs := memfs.New()
	db, err := pando.Open("db", &pando.Options{FS: fs, KeepChanges: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ks, err := db.Keyspace("k", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *pando.Tx) error {
		if err := tx.Put([]byte("a"), []byte("1")); err != nil {
			return err
		}
		if err := tx.In(ks).Note([]byte("why")); err != nil {
			return err
		}
		if _, err := tx.Get([]byte("a")); err != nil { // a read behind it looks through the transaction's writes
			return err
		}
		return tx.Delete([]byte("a"))
	})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("changed my mind")
	if err := db.Update(func(tx *pando.Tx) error { return errors.Join(tx.Note([]byte("never")), gone) }); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	b := db.NewBatch()
	if err := b.Note([]byte("alone")); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := b.Note(make([]byte, pando.MaxKeyBytes+1)); !errors.Is(err, pando.ErrKeyTooLarge) {
		t.Errorf("a note that is too long: %v", err)
	}
	var got []string
	for c, err := range db.Changes(context.Background(), pando.ChangesOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join(strings.Fields(c.Kind.String()+" "+c.Keyspace+" "+string(c.Key)+" "+string(c.Value)), " "))
	}
	want := "create k; put default a 1; note k why; delete default a; note default alone"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("changes are %s, want %s", s, want)
	}
	if n, err := db.Count(nil, nil); n != 0 || err != nil {
		t.Errorf("%d pairs, %v", n, err)
	}
}

// A reader who had read what a power cut took once waited in silence, and then missed as many changes.
func TestChangesDoNotGoOnBehindWhatIsLost(t *testing.T) {
	db, err := pando.Open("db", &pando.Options{FS: memfs.New(), KeepChanges: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Put([]byte("key"), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits here
	for ahead := range uint64(3) {
		var failed error
		for _, err := range db.Changes(ctx, pando.ChangesOptions{From: db.LastSeq() + ahead, Follow: true}) {
			failed = err
		}
		if gone := errors.Is(failed, pando.ErrChangesGone); gone != (ahead == 2) {
			t.Errorf("from %d on behind change %d: %v", ahead, db.LastSeq(), failed)
		}
	}
}
