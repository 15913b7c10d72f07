package pando

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

func TestBounds(t *testing.T) {
	tests := []struct {
		name   string
		lo, hi []byte
		want   int
	}{
		{"open", nil, nil, 100},
		{"empty upper", nil, []byte{}, 0},
		{"empty upper with lower", []byte("k010"), []byte{}, 0},
		{"empty lower", []byte{}, nil, 100},
		{"exact", []byte("k010"), []byte("k020"), 5},
		{"between", []byte("k009"), []byte("k021"), 6},
		{"same", []byte("k010"), []byte("k010"), 0},
		{"reversed", []byte("k020"), []byte("k010"), 0},
		{"below", nil, []byte("a"), 0},
		{"above", []byte("z"), nil, 0},
		{"around", []byte("a"), []byte("z"), 100},
	}
	states(t, fillEven, func(t *testing.T, db *DB) {
		for _, tt := range tests {
			if n, err := db.Count(tt.lo, tt.hi); err != nil || n != int64(tt.want) {
				t.Errorf("%s: count %d, %v, want %d", tt.name, n, err, tt.want)
			}
			forward, back := 0, 0
			for range db.Range(tt.lo, tt.hi) {
				forward++
			}
			for range db.RangeReverse(tt.lo, tt.hi) {
				back++
			}
			if forward != tt.want || back != tt.want || db.Err() != nil {
				t.Errorf("%s: %d forward, %d back, want %d; %v", tt.name, forward, back, tt.want, db.Err())
			}
			if _, _, err := db.Nth(tt.lo, tt.hi, int64(tt.want)); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: nth behind the end: %v", tt.name, err)
			}
			if _, _, err := db.Nth(tt.lo, tt.hi, -1); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: nth -1: %v", tt.name, err)
			}
			if tt.want > 0 {
				if _, _, err := db.Nth(tt.lo, tt.hi, int64(tt.want-1)); err != nil {
					t.Errorf("%s: last: %v", tt.name, err)
				}
			}
		}
	})
}

// TestIteratorOnce: what a walk keeps makes no difference to what it shows.
func TestIteratorOnce(t *testing.T) {
	states(t, fillEven, func(t *testing.T, db *DB) {
		want, it := db.Iter(nil), db.Iter(&IterOptions{Once: true})
		defer want.Close()
		defer it.Close()
		for want.Next() {
			if !it.Next() || string(it.Key()) != string(want.Key()) || string(it.Value()) != string(want.Value()) {
				t.Fatalf("%q %q, want %q %q; %v", it.Key(), it.Value(), want.Key(), want.Value(), it.Err())
			}
		}
		if it.Next() || it.Err() != nil || want.Err() != nil {
			t.Errorf("at the end: %q, %v, %v", it.Key(), it.Err(), want.Err())
		}
	})
}

func TestIteratorPositions(t *testing.T) {
	states(t, fillEven, func(t *testing.T, db *DB) {
		it := db.Iter(&IterOptions{Lower: []byte("k010"), Upper: []byte("k020")})
		defer it.Close()
		at := func(what string, ok bool, want string) {
			t.Helper()
			if ok != (want != "") || it.Valid() != ok || string(it.Key()) != want || it.Err() != nil {
				t.Errorf("%s: %v, valid %v, at %q, %v, want %q", what, ok, it.Valid(), it.Key(), it.Err(), want)
			}
		}
		if it.Valid() || it.Key() != nil || it.Value() != nil {
			t.Error("a new iterator stands on something")
		}
		at("next of new", it.Next(), "k010")
		at("prev before first", it.Prev(), "")
		at("prev again", it.Prev(), "")
		at("next from before first", it.Next(), "k010")
		at("last", it.Last(), "k018")
		at("next behind last", it.Next(), "")
		at("next again", it.Next(), "")
		at("prev from behind last", it.Prev(), "k018")
		at("seek between", it.SeekGE([]byte("k011")), "k012")
		at("prev after seek", it.Prev(), "k010")
		at("next after turning", it.Next(), "k012")
		at("seek below", it.SeekGE([]byte("a")), "k010")
		at("seek nil", it.SeekGE(nil), "k010")
		at("seek above", it.SeekGE([]byte("k020")), "")
		at("prev after failed seek", it.Prev(), "k018")
		at("seekLT above", it.SeekLT([]byte("z")), "k018")
		at("seekLT exact", it.SeekLT([]byte("k012")), "k010")
		at("seekLT lower", it.SeekLT([]byte("k010")), "")
		at("next after failed seekLT", it.Next(), "k010")
		at("seekLT nil", it.SeekLT(nil), "")
		must(t, it.Close())
		must(t, it.Close())
		if it.Next() || it.First() || it.SeekGE([]byte("k010")) || it.Valid() || it.Key() != nil || it.Value() != nil {
			t.Error("a closed iterator moves")
		}
		wantErr(t, "closed iterator", it.Err(), ErrClosed)

		back := db.Iter(nil)
		defer back.Close()
		if !back.Prev() || string(back.Key()) != "k198" {
			t.Errorf("prev of a new iterator: %q", back.Key())
		}
		keys := db.Iter(&IterOptions{KeysOnly: true})
		defer keys.Close()
		if !keys.Next() || keys.Value() != nil {
			t.Error("keys only shows a value")
		}
	})
}

// TestIteratorGivenUp: what an iterator that has been closed answers does not depend on who opens one after it, whom it does not disturb.
func TestIteratorGivenUp(t *testing.T) {
	states(t, fillEven, func(t *testing.T, db *DB) {
		var closed []*Iterator
		for range 4 {
			it := db.Iter(nil)
			if !it.First() {
				t.Fatal(it.Err())
			}
			must(t, it.Close())
			if it.Err() != nil {
				t.Errorf("a walk that was given up: %v", it.Err())
			}
			closed = append(closed, it)
		}
		it := db.Iter(&IterOptions{Lower: []byte("k010"), KeysOnly: true})
		defer it.Close()
		other := db.Iter(nil)
		defer other.Close()
		if !it.Next() || !other.Last() {
			t.Fatal(it.Err(), other.Err())
		}
		for _, c := range closed {
			if c.Next() || c.Prev() || c.Last() || c.SeekLT([]byte("z")) || c.Valid() || c.Key() != nil || c.Value() != nil ||
				c.NextWanted(func([]byte) bool { return true }) {
				t.Error("a closed iterator moves")
			}
			wantErr(t, "closed iterator", c.Err(), ErrClosed)
			must(t, c.Close())
		}
		if string(it.Key()) != "k010" || it.Value() != nil || string(other.Key()) != "k198" || other.Value() == nil {
			t.Errorf("disturbed: %q %q, %q", it.Key(), it.Value(), other.Key())
		}
		if !it.Next() || string(it.Key()) != "k012" || !other.Prev() || string(other.Key()) != "k196" {
			t.Errorf("disturbed: %q, %v, %q, %v", it.Key(), it.Err(), other.Key(), other.Err())
		}
	})
}

// A walk over keys only asks about each pair without its value, wherever that lies.
func TestWantedOfKeysOnly(t *testing.T) {
	states(t, fillEven, func(t *testing.T, db *DB) {
		it := db.Iter(&IterOptions{KeysOnly: true})
		asked := 0
		for it.NextWanted(func(value []byte) bool {
			if asked++; value != nil {
				t.Errorf("at pair %d it is asked about %q", asked, value)
			}
			return asked%7 == 0
		}) {
			if want := fmt.Sprintf("k%03d", 2*(asked-1)); string(it.Key()) != want || it.Value() != nil {
				t.Errorf("at %q %q, want %s", it.Key(), it.Value(), want)
			}
		}
		if must(t, it.Close()); asked != 100 {
			t.Errorf("it is asked about %d pairs", asked)
		}
	})
}

// An iterator that has given a large value back reads it again, and the slice that was got before stays.
func TestIteratorGivesValuesBack(t *testing.T) {
	db := openMem(t, memfs.New(), Options{ValueThreshold: 1000})
	value := func(c byte) []byte { return bytes.Repeat([]byte{c}, 100_000) }
	must(t, db.Put([]byte("a"), value('a')))
	must(t, db.Put([]byte("b"), value('b')))
	it := db.Iter(nil)
	it.ReleaseValue()
	for _, c := range []byte("ab") {
		if !it.Next() {
			t.Fatal(it.Err())
		}
		first := it.Value()
		it.ReleaseValue()
		if again := it.Value(); !bytes.Equal(first, value(c)) || !bytes.Equal(again, first) || &again[0] == &first[0] {
			t.Errorf("the value of %c is another one after it was given back: %v", c, it.Err())
		}
	}
	must(t, it.Close())
	it.ReleaseValue()
}
