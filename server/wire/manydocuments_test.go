package wire

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// A message takes no more than a few times its length in memory, however small the documents in it are, in one section or in many: of
// those that are more than a command may have only the number is kept.
func TestManySmallDocumentsTakeLittleMemory(t *testing.T) {
	for _, sections := range []int{1, 90} {
		documents := 9_000_000 / sections
		empty := []byte{5, 0, 0, 0, 0}
		msg := append(make([]byte, MsgBytes, MaxMessage), empty...)
		for i := range sections {
			field := append([]byte{'a' + byte(i/26), 'a' + byte(i%26)}, 0)
			msg = binary.LittleEndian.AppendUint32(append(msg, 1), uint32(4+len(field)+documents*len(empty)))
			msg = append(append(msg, field...), bytes.Repeat(empty, documents)...)
		}
		BeginMsg(msg, 1, 0, 0)
		checkManyDocuments(t, msg, sections*documents)
	}
}

// checkManyDocuments reads a message with so many documents.
func checkManyDocuments(t *testing.T, msg []byte, documents int) {
	t.Helper()
	var before, after runtime.MemStats
	r := NewReader(bytes.NewReader(msg))
	runtime.ReadMemStats(&before)
	m, err := r.Read()
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4*MaxMessage {
		t.Errorf("a message of %d bytes took %d", len(msg), took)
	}
	listed, more := 0, 0
	for _, s := range m.Sequences {
		listed, more = listed+len(s.Documents), more+s.More
	}
	if listed != MaxDocuments || listed+more != documents {
		t.Errorf("%d documents are listed, and there are %d more", listed, more)
	}
}
