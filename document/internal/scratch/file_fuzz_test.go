package scratch

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// FuzzBlock reads files of any content, with the checksum right or wrong: never more than an error.
func FuzzBlock(f *testing.F) {
	f.Add(appendRecord(make([]byte, blockHeader), []byte("key"), []byte("value")), true)
	f.Add([]byte{1, 2, 3}, false)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed && len(data) >= blockHeader {
			seal(data)
		}
		x, err := space(t, memfs.New(), 0).create()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.f.WriteAt(data, 0); err != nil {
			t.Fatal(err)
		}
		x.size = int64(len(data))
		r := reader{f: x}
		for {
			ok, err := r.next()
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			if !ok {
				return
			}
		}
	})
}
