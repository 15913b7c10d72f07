package document

import (
	"slices"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// What $out and convertToCapped fill is seen by nobody. Where the process was killed, or the store closed, while they did, it is gone when the
// store is opened next: it stayed for ever, and no listing of a server shows it.
func TestWhatOutHasFilledIsGoneWithItsProcess(t *testing.T) {
	fs := memfs.New()
	options := func(fs *memfs.FS) *Options {
		return &Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1}
	}
	s := opened(t, options(fs))
	ctx := t.Context()
	var killed *memfs.FS
	docs := &counted{count: 25_000, at: 15_000, happens: func() error {
		killed = fs.KillImage()
		return s.Close()
	}}
	if err := s.replaceCollection(ctx, namespace{"d", "c"}, docs, false); err == nil {
		t.Fatal("$out goes on in a store that is closed")
	}
	for name, fs := range map[string]*memfs.FS{"killed": killed, "closed": fs} {
		reader := options(fs)
		if reader.Storage.ReadOnly = true; name == "closed" { // which removes nothing, and opens all the same
			if err := opened(t, reader).Close(); err != nil {
				t.Error(err)
			}
		}
		s := opened(t, options(fs))
		if list, err := s.Databases(ctx); len(list) > 0 || err != nil {
			t.Errorf("%s: there is %q, %v", name, list, err)
		}
		all, err := s.DB().Keyspaces()
		if i := slices.IndexFunc(all, func(k pando.KeyspaceInfo) bool { return k.Name == recordsName(1) }); i >= 0 || err != nil {
			t.Errorf("%s: the records are there, %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
