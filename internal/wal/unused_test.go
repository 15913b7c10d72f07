package wal

import "testing"

// A segment to which nothing was ever appended is gone on with after a recovery, whoever left it how; one in which remains were cut off
// is not, nor is one with records.
func TestUnusedSegmentIsGoneOnWith(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		disk := newFS(t)
		o := options(disk, plain)
		l, err := Create(o, 1)
		must(t, err)
		var h history
		reopen := func(segment uint64) {
			t.Helper()
			o.FS = disk
			l, _ = recoverAll(t, o, Position{Segment: 1}, &h, 0, len(h.seqs))
			must(t, h.append(t, l, 100))
			if got := l.Position().Segment; got != segment {
				t.Fatalf("a record lies in segment %d, not in %d", got, segment)
			}
		}
		must(t, l.Close())
		for range 2 {
			l, _ = recoverAll(t, o, Position{Segment: 1}, &h, 0, 0)
			disk = disk.KillImage()
			must(t, l.Close())
		}
		reopen(1)
		disk = disk.KillImage() // with a record
		must(t, l.Close())
		reopen(2)
		must(t, l.Close())

		h = history{}
		disk = newFS(t)
		o.FS = disk
		l, err = Create(o, 1)
		must(t, err)
		must(t, h.append(t, l, 100))
		torn, err := disk.OpenReadWrite(o.path(1))
		must(t, err)
		_, err = torn.WriteAt([]byte{^h.payloads[0][50]}, firstFrame+frameHeader+50)
		must(t, err)
		must(t, torn.Close())
		disk = disk.KillImage()
		must(t, l.Close())
		h = history{}
		reopen(2)
		must(t, l.Close())
	})
}

// Power cuts while a log is written to that was reopened unused.
func TestCrashAfterReopeningUnused(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		for seed := range uint64(usualReopened) {
			c := newCrasher(t, *seedFlag+seed, plain)
			c.reopen(false)
			for _, n := range []int{100, 5000, 3000, 20000} {
				c.append(n)
				if c.rng.IntN(3) == 0 {
					c.sync()
				}
			}
			must(t, c.l.Close())
		}
	})
}
