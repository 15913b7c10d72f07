//go:build linux

package device

import (
	"fmt"
	"os"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/test/filling"
)

// From a disk that the database has filled itself records can be deleted, which makes room for others.
func TestDiskFilledByTheDatabase(t *testing.T) {
	each(t, nil, func(t *testing.T, v *volume) {
		for _, test := range []struct {
			layout pando.Layout
			memory int64
			size   int
		}{
			{pando.Tree, 4 << 20, 100},
			{pando.Tree, 64 << 20, 4000},
			{pando.Hash, 4 << 20, 4000},
			{pando.Hash, 64 << 20, 100},
		} {
			t.Run(fmt.Sprintf("%v/%d", test.layout, test.size), func(t *testing.T) {
				must(t, os.RemoveAll(v.database()))
				f := filling.New(t, 1, test.size)
				f.Open(v.database(), pando.Options{Profile: pando.Relaxed, MemoryBytes: test.memory}, test.layout)
				f.Again()
				f.Close()
			})
		}
	})
}
