package memfs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestContentAgainstModel runs random programs on one file and holds every kind of image against two byte slices: what was
// written and what was synced.
func TestContentAgainstModel(t *testing.T) {
	const programs, steps, sizeMax = 30, 120, 20000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range programs {
		fsys := memfs.New()
		f := settled(t, fsys, "/f", "")
		var now, durable []byte
		for step := range steps {
			size := rng.IntN(sizeMax)
			switch rng.IntN(10) {
			case 0:
				must(t, f.Truncate(int64(size)))
				now = sized(now, size)
			case 1:
				must(t, f.Sync())
				durable = bytes.Clone(now)
			case 2:
				var err error
				fsys = fsys.KillImage()
				f, err = fsys.OpenReadWrite("/f")
				must(t, err)
			case 3: // more writes than are remembered one by one
				for range 1100 * rng.IntN(2) {
					off := rng.IntN(sizeMax)
					now = write(t, f, now, off, []byte{byte(rng.Uint32())})
				}
			case 4: // stores through a mapping, of which some are before a sync
				if len(now) == 0 {
					break
				}
				m, err := f.Map(int64(len(now)))
				must(t, err)
				for range rng.IntN(20) {
					i, b := rng.IntN(len(now)), byte(rng.Uint32())
					m.Bytes()[i], now[i] = b, b
				}
				must(t, m.Close())
			default:
				p := make([]byte, rng.IntN(3000)+1)
				for i := range p {
					p[i] = byte(rng.Uint32()) | 1
				}
				now = write(t, f, now, size, p)
			}
			checkImages(t, fsys, step, now, durable, rng.Uint64())
		}
	}
}

func write(t *testing.T, f vfs.File, now []byte, off int, p []byte) []byte {
	_, err := f.WriteAt(p, int64(off))
	must(t, err)
	now = sized(now, max(len(now), off+len(p)))
	copy(now[off:], p)
	return now
}

func sized(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

func checkImages(t *testing.T, fsys *memfs.FS, step int, now, durable []byte, seed uint64) {
	t.Helper()
	content := func(policy memfs.Policy) []byte {
		got, err := vfs.ReadFile(fsys.CrashImage(policy), "/f", 1<<20)
		must(t, err)
		return got
	}
	if got := content(memfs.Policy{}); !bytes.Equal(got, durable) {
		t.Fatalf("step %d: lost or kept too much: %d bytes, %d were synced", step, len(got), len(durable))
	}
	if got := content(memfs.Policy{Unsynced: memfs.All}); !bytes.Equal(got, now) {
		t.Fatalf("step %d: %d bytes, %d were written", step, len(got), len(now))
	}
	for _, reordered := range []bool{false, true} {
		policy := memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: reordered, Torn: 512}
		got := content(policy)
		if len(got) < min(len(now), len(durable)) || len(got) > max(len(now), len(durable)) {
			t.Fatalf("step %d, %+v: %d bytes, between %d and %d", step, policy, len(got), len(durable), len(now))
		}
		for at := 0; at < len(got); at += 512 {
			end := min(at+512, len(got))
			if !sector(got, now, at, end) && !sector(got, durable, at, end) {
				t.Fatalf("step %d, %+v: sector at %d is neither old nor new", step, policy, at)
			}
		}
	}
}

// sector tells whether got[at:end] is from, with zeroes behind its end.
func sector(got, from []byte, at, end int) bool {
	want := make([]byte, end-at)
	if at < len(from) {
		copy(want, from[at:])
	}
	return bytes.Equal(got[at:end], want)
}
