package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestReplay takes in records of all lengths, each out of memory that is used for the next one as well. All that was taken in before a
// record that cannot be is there, and nothing of that one; what is not applied when drain comes is not applied by another.
func TestReplay(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		e, err := Open(Options{FS: memfs.New(), Dir: "/db", MemoryBytes: 32 << 20})
		if err != nil {
			t.Fatal(err)
		}
		e.cancel() // recovery is alone
		e.worker.Wait()
		r := e.newReplay()
		var enc command.Encoder
		var buf []byte
		want := map[string][]byte{}
		lengths := []int{1, 60, shortBytes - 1, shortBytes, shortBytes + 1, waitBytes - 100, 60_000, wholeBytes + 1}
		seq := e.lastSeq
		take := func(damage bool) error {
			enc.Reset()
			count := 0
			for length, enough := 0, lengths[rng.IntN(len(lengths))]; length < enough; count++ {
				key := binary.BigEndian.AppendUint32(nil, rng.Uint32N(5000))
				value := bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(min(enough, 30_000)))
				if damage {
					key = append(key, "damaged"...)
				}
				enc.Put(DefaultID, key, value, 0)
				length += len(key) + len(value)
				if !damage {
					want[string(key)] = value
				}
			}
			payload := enc.Payload()
			if damage {
				payload = append(payload, 0xff)
			}
			buf = append(buf[:0], payload...)
			defer clear(buf)
			if !damage {
				seq += uint64(count)
			}
			return r.take(seq, buf, true)
		}
		for range 50 + rng.IntN(400) {
			if err := take(false); err != nil {
				t.Fatal(err)
			}
		}
		seq++
		if err := take(true); !errors.Is(err, command.ErrMalformed) {
			t.Fatalf("a damaged record: %v", err)
		}
		for range 2 {
			if err := r.drain(); err != nil {
				t.Fatal(err)
			}
		}
		if e.lastSeq != seq-1 {
			t.Errorf("the last command is %d, want %d", e.lastSeq, seq-1)
		}
		e.visible.Store(e.lastSeq)
		ks := e.keyspaces.id(DefaultID)
		for key, value := range want {
			if got, err := e.Get(nil, ks, []byte(key)); err != nil || !bytes.Equal(got, value) {
				t.Fatalf("seed %d, key %x: %d bytes, %v", seed, key, len(got), err)
			}
			if _, err := e.Get(nil, ks, []byte(key+"damaged")); !errors.Is(err, ErrNotFound) {
				t.Fatalf("seed %d, key %x of the damaged record: %v", seed, key, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
