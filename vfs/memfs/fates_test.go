package memfs_test

import (
	"bytes"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A kernel writes back file by file: a crash may have all of one and nothing of another, however much there is of both.
func TestFilesOfAnImageHaveFatesOfTheirOwn(t *testing.T) {
	fsys := memfs.New()
	const length = 64 << 10
	names := []string{"/a", "/b"}
	for _, name := range names {
		f := settled(t, fsys, name, string(bytes.Repeat([]byte{'o'}, length)))
		_, err := f.WriteAt(bytes.Repeat([]byte{'n'}, length), 0)
		must(t, err)
	}
	seen := map[[2]int]bool{}
	for seed := range uint64(400) {
		image := fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Torn: 512, Reordered: true})
		var kept [2]int
		for i, name := range names {
			data, err := vfs.ReadFile(image, name, length)
			must(t, err)
			kept[i] = bytes.Count(data, []byte{'n'})
		}
		seen[kept] = true
	}
	if !seen[[2]int{0, length}] || !seen[[2]int{length, 0}] {
		t.Error("never was all of one file there and nothing of the other")
	}
}
