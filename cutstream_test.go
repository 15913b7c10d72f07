package pando

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/pandodb/pando/vfs/memfs"
)

// A reader that ends with an error has failed, also where the error says that what it read from ended too early, as those of gzip, of HTTP
// and of connections do: nothing is stored then, however long the value is.
func TestReaderThatIsCutShortStoresNothing(t *testing.T) {
	for _, cut := range []error{io.ErrUnexpectedEOF, fmt.Errorf("lost the connection: %w", io.EOF), fmt.Errorf("unpack: %w", io.ErrUnexpectedEOF)} {
		for _, length := range []int{0, 1, 1024, 1025, 100 << 10, 1 << 20, 3<<20 + 1} {
			t.Run(fmt.Sprint(cut, length), func(t *testing.T) {
				db := openMem(t, memfs.New(), Options{})
				err := db.PutReader([]byte("key"), io.MultiReader(bytes.NewReader(make([]byte, length)), iotest.ErrReader(cut)))
				if !errors.Is(err, cut) {
					t.Errorf("PutReader: %v", err)
				}
				if there, err := db.Has([]byte("key")); there || err != nil {
					t.Errorf("something is stored; %v", err)
				}
			})
		}
	}
}

// A reader may give its last bytes together with the end, give little at a time, or nothing now and then.
func TestReadersThatGiveAsTheyLike(t *testing.T) {
	for name, odd := range map[string]func(io.Reader) io.Reader{"end with data": iotest.DataErrReader, "half": iotest.HalfReader} {
		for _, length := range []int{0, 1, 1024, 1025, 1 << 20, 1<<20 + 1} {
			db := openMem(t, memfs.New(), Options{})
			want := incompressible(length)
			must(t, db.PutReader([]byte("key"), odd(bytes.NewReader(want))))
			if got, err := db.Get([]byte("key")); !bytes.Equal(got, want) || err != nil {
				t.Errorf("%s: %d bytes instead of %d, %v", name, len(got), length, err)
			}
			must(t, db.Close())
		}
	}
}
