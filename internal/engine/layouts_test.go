package engine

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// TestLayoutOfANewerVersion: a keyspace whose layout this version does not make is refused by Open, whether the log tells of it or the
// catalogue.
func TestLayoutOfANewerVersion(t *testing.T) {
	for _, layout := range []Layout{Flex, Hash + 1} {
		fs := memfs.New()
		e, err := Open(Options{FS: fs, Dir: "db"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.OpenKeyspace("later", &KeyspaceOptions{Layout: layout}); !errors.Is(err, ErrLayout) {
			t.Errorf("%v: created with %v", layout, err)
		}
		if _, err := e.createKeyspace("later", KeyspaceOptions{Layout: layout}); err != nil {
			t.Fatal(err)
		}
		inLog := fs.KillImage()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		for where, fs := range map[string]*memfs.FS{"log": inLog, "catalogue": fs} {
			if _, err := Open(Options{FS: fs, Dir: "db"}); !errors.Is(err, ErrLayout) {
				t.Errorf("%v in the %s: %v", layout, where, err)
			}
		}
	}
}

// TestHashTablesHaveNoLeaves: what is asked for leaves, of which a hash table has none, is not kept.
func TestHashTablesHaveNoLeaves(t *testing.T) {
	e, err := Open(Options{FS: memfs.New(), Dir: "db"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ks, err := e.OpenKeyspace("hash", &KeyspaceOptions{Layout: Hash, LeafBytes: 4096, NoFilters: true, OwnCodec: true})
	if err != nil || ks.LeafBytes != 0 || ks.NoFilters || !ks.OwnCodec {
		t.Errorf("%+v, %v", ks.Spec, err)
	}
}
