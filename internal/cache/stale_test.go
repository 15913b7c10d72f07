package cache

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/epoch"
)

// Behind the last frame of a chunk may lie what earlier pages, or whoever had the memory before, have left: a handle of a time when the
// chunk had more frames does not take it for a frame.
func TestStaleHandlesFindNoFrameBehindTheLast(t *testing.T) {
	const chunk = 1 << minShift
	classes := newClasses(chunk)
	for small := range classes {
		for large := small + 1; large < len(classes); large++ {
			d := epoch.New()
			c := New(chunk, d)
			for _, f := range fillChunk(t, c, chunk) {
				memory := c.memory(f)
				for i := 3 * 4; i < len(memory); i += 4 {
					binary.LittleEndian.PutUint32(memory[i:], 3) // the generation that the smaller frames are going to have
				}
				c.Drop(publishEmpty(t, c, f))
			}
			var stale []Handle
			for _, f := range fillChunk(t, c, classes[small].size) {
				h := publishEmpty(t, c, f)
				if h.generation() != 3 {
					t.Fatalf("frames have generation %d", h.generation())
				}
				stale = append(stale, h)
			}
			for _, h := range stale {
				c.Drop(h)
			}
			frames := fillChunk(t, c, classes[large].size)
			for _, h := range stale {
				if c.find(h) != nil {
					t.Errorf("frame %d of %d bytes is there beside %d frames of %d bytes", h.frame().index(), classes[small].size, len(frames), classes[large].size)
				}
			}
			for _, f := range frames {
				c.putBack(f)
			}
			d.Close()
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fillChunk takes all frames that a cache of one chunk has for pages of so many bytes.
func fillChunk(t *testing.T, c *Cache, size int) (frames []frame) {
	t.Helper()
	for range 100 { // the chunk may have to be drained first
		f, err := c.take(size)
		switch {
		case err == nil:
			frames = append(frames, f)
			if len(frames) == c.classes[c.classOf(size)].count {
				return frames
			}
		case !errors.Is(err, ErrBusy):
			t.Fatal(err)
		}
		c.epoch.Collect()
	}
	t.Fatalf("%d frames of %d bytes", len(frames), size)
	return nil
}

// publishEmpty makes a frame that nothing was written to live.
func publishEmpty(t *testing.T, c *Cache, f frame) Handle {
	t.Helper()
	h := Handle(c.header(f).Generation.Load())<<generationAt | Handle(f)
	if !c.publish(f) {
		t.Fatal("the frame's chunk is being drained")
	}
	return h
}
