package engine

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/memfs"
)

// The log goes with what settles, and what takes room in the log and little or none in a memtable settles too.
func TestLogIsBoundedWhateverIsWritten(t *testing.T) {
	for name, add := range map[string]func(enc *command.Encoder){
		"notes":        func(enc *command.Encoder) { enc.Note(DefaultID, make([]byte, 60<<10)) },
		"the same key": func(enc *command.Encoder) { enc.Put(DefaultID, bytes.Repeat([]byte("k"), 60<<10), nil, 0) },
		"no keys": func(enc *command.Encoder) {
			bound := bytes.Repeat([]byte("k"), 30<<10)
			enc.DeleteRange(DefaultID, bound, bound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which no time passes, so that there is no pause after which the worker settles by itself
				e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				most := int64(0)
				for range 120 {
					var enc command.Encoder
					add(&enc)
					if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					most = max(most, e.log.Size())
				}
				if limit := 3 * logPerMemtable * int64(e.sizes.memtable); most > limit {
					t.Errorf("the log has had %d bytes, with a memtable of %d", most, e.sizes.memtable)
				}
			})
		})
	}
}
