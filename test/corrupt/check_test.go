package corrupt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
)

// damageValues flips a bit in every stored copy of a value, wherever it lies.
func damageValues(t *testing.T, fsys vfs.FS, value []byte) (found int) {
	for _, name := range list(t, fsys, dir+"/segments") {
		change(t, fsys, name, func(b []byte) []byte {
			for at := 0; ; at++ {
				i := bytes.Index(b[at:], value)
				if i < 0 {
					return b
				}
				at += i
				b[at] ^= 1
				found++
			}
		})
	}
	return found
}

func distinct(i int) []byte {
	b := make([]byte, 300)
	for j := range b {
		b[j] = byte(i*31 + j*j*7 + j>>3)
	}
	return b
}

// Check once passed over values that only the log refers to.
func TestCheckReadsValuesThatHaveNotSettled(t *testing.T) {
	fsys, _, db := uncompressed(t)
	must(t, db.Put([]byte("key"), distinct(1)))
	if damageValues(t, fsys, distinct(1)) != 1 {
		t.Fatal("the value is not where it was looked for")
	}
	report, err := db.Check(context.Background())
	must(t, err)
	if len(report.Damage) != 1 || !errors.Is(report.Err(), pando.ErrCorrupt) {
		t.Errorf("damage: %v", report.Damage)
	}
	_ = db.Close()
}

// Check once did not look at values behind the first one, or the first leaf, that was damaged.
func TestCheckGoesOnBehindDamage(t *testing.T) {
	fsys, o, db := uncompressed(t)
	k, err := db.Keyspace("values", &pando.KeyspaceOptions{LeafBytes: 256})
	must(t, err)
	for i := range 100 {
		must(t, k.Put(fmt.Appendf(nil, "key %03d", i), distinct(i)))
	}
	must(t, db.Close())
	want := damageValues(t, fsys, distinct(3)) + damageValues(t, fsys, distinct(97))
	leaves := damageValues(t, fsys, []byte("050"))
	if want != 2 || leaves == 0 {
		t.Fatalf("%d values and %d keys found", want, leaves)
	}
	db, err = pando.Open(dir, o)
	must(t, err)
	report, err := db.Check(context.Background())
	must(t, err)
	for _, key := range []string{"key 003", "key 097"} {
		found := false
		for _, d := range report.Damage {
			found = found || bytes.Contains([]byte(d.Err.Error()), fmt.Appendf(nil, "%x", key))
		}
		if !found {
			t.Errorf("the damaged value of %q is not reported: %v", key, report.Damage)
		}
	}
	if len(report.Damage) < 3 {
		t.Errorf("damage: %v", report.Damage)
	}
	must(t, db.Close())
}
