package compat

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/pandodb/pando/vfs"
)

// makeLater gives both root slots format 77. The places of version and checksum are the same in all formats: see
// docs/format/root.md.
func makeLater(t *testing.T, fsys vfs.FS) {
	const slot, version = 4096, 16
	b, err := vfs.ReadFile(fsys, dir+"/ROOT", 1<<20)
	must(t, err)
	for s := b; len(s) > 0; s = s[slot:] {
		binary.LittleEndian.PutUint32(s[version:], 77)
		binary.LittleEndian.PutUint32(s[slot-4:], crc32.Checksum(s[:slot-4], crc32.MakeTable(crc32.Castagnoli)))
	}
	must(t, vfs.WriteFile(fsys, dir+"/ROOT", b))
}
