//go:build lmdb || rocksdb

package engines

import (
	"encoding/binary"

	"github.com/pandodb/pando/bench/engine"
)

// packOps lays operations one behind the other, so that C gets a whole batch in one call: u32 key length, u32 value length
// (all ones for a delete), key, value.
func packOps(dst []byte, batch []engine.Op) []byte {
	for _, op := range batch {
		dst = binary.NativeEndian.AppendUint32(dst, uint32(len(op.Key)))
		if op.Delete {
			dst = append(binary.NativeEndian.AppendUint32(dst, ^uint32(0)), op.Key...)
			continue
		}
		dst = binary.NativeEndian.AppendUint32(dst, uint32(len(op.Value)))
		dst = append(append(dst, op.Key...), op.Value...)
	}
	return dst
}
