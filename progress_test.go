package pando

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// linkless is a file system without hard links.
type linkless struct{ *memfs.FS }

func (linkless) Link(string, string) error { return errors.ErrUnsupported }

// TestProgress: long calls tell how far they are, part by part.
func TestProgress(t *testing.T) {
	for _, test := range []struct {
		name  string
		call  func(ctx context.Context, db *DB, o *Options) error
		parts int
	}{
		{"check", func(ctx context.Context, db *DB, _ *Options) error { _, err := db.Check(ctx); return err }, 1},
		{"backup", func(ctx context.Context, db *DB, _ *Options) error { return db.Backup(ctx, "new") }, 1},
		{"salvage", func(ctx context.Context, db *DB, o *Options) error {
			_, err := Salvage(ctx, "copy", "new", o)
			return err
		}, 1},
		{"salvage without roots", func(ctx context.Context, db *DB, o *Options) error {
			err := o.FS.Remove("copy/ROOT")
			_, salvaging := Salvage(ctx, "copy", "new", o)
			return errors.Join(err, salvaging)
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Options{FS: linkless{memfs.New()}, MemoryBytes: 1 << 20, ValueThreshold: 100}
			db := openMem(t, o.FS, o)
			for i := range 5000 {
				must(t, db.Put(fmt.Appendf(nil, "key %06d", i), make([]byte, i%200)))
			}
			must(t, db.Backup(t.Context(), "copy"))
			var told [][2]int64
			must(t, test.call(WithProgress(t.Context(), func(done, total int64) { told = append(told, [2]int64{done, total}) }), db, &o))
			begins := 0
			for i, now := range told {
				switch {
				case now[0] == 0:
					begins++
				case now[1] != told[i-1][1] || now[0] < told[i-1][0] || now[0] > now[1]:
					t.Fatalf("%d of %d is told after %d of %d", now[0], now[1], told[i-1][0], told[i-1][1])
				}
			}
			if last := told[len(told)-1]; begins != test.parts || last[0] != last[1] || slices.IndexFunc(told, between) < 0 {
				t.Errorf("%d parts, want %d; told %v", begins, test.parts, told)
			}
		})
	}
}

// between reports whether something is done, and not all of it.
func between(told [2]int64) bool { return 0 < told[0] && told[0] < told[1] }
