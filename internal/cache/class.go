package cache

import "slices"

const (
	// maxShift makes chunks of 1 MiB, the largest page. A small budget has smaller chunks, so that each size class that is in
	// use gets some.
	maxShift  = 20
	minShift  = 16
	minChunks = 64

	smallestFrame = 1 << 10
	frameAlign    = 64 // a cache line

	usualClasses = 36 // of chunks of 1 MiB

	// noFrames stands for a chunk's stride when it has none: a frame at any index would end after the chunk.
	noFrames = 1<<maxShift + 1
)

// chunkShift picks the size of chunks for a budget.
func chunkShift(bytes int64) uint {
	shift := uint(maxShift)
	for shift > minShift && bytes>>shift < minChunks {
		shift -= 2
	}
	return shift
}

// class is all chunks whose frames have one size.
type class struct {
	size   int // of a frame
	count  int // of frames in a chunk
	chunks []int
	free   []frame // nobody's: to be filled at once
	out    int     // evicted frames on their way to free
	lent   int     // frames that other classes have lent it before it had any
	// The hand of the clock: the next frame to look at.
	handChunk int // index in chunks
	handFrame int
	next      int // index in chunks, modulo their number: the next that may be taken away
	pressure  int // evictions, halved whenever chunks are moved between classes
}

// newClasses lists the classes by size: each a fraction of a chunk, about a fifth apart where the fractions allow. There are as many frames
// as fit: behind the last one is no room for a further one, which a handle from before the chunk was cut so might stand for.
func newClasses(chunk int) []class {
	classes := make([]class, 0, usualClasses)
	for n := 1; n <= framesPerChunk && chunk/n >= smallestFrame; n += max(1, n/5) {
		size := chunk / n / frameAlign * frameAlign
		classes = append(classes, class{size: size, count: chunk / size})
	}
	slices.Reverse(classes)
	return classes
}

// classOf is the index of the smallest class with frames of size bytes, -1 if there is none.
func (c *Cache) classOf(size int) int {
	k, _ := slices.BinarySearch(c.sizes, size)
	if k == len(c.sizes) {
		return -1
	}
	return k
}

// Frame is how much memory a page of size bytes takes in the cache; 0 if there are no frames so large.
func (c *Cache) Frame(size int) int {
	k := c.classOf(size)
	if k < 0 || len(c.strides) == 0 {
		return 0
	}
	return c.sizes[k]
}

// frames is how many frames the class has.
func (cl *class) frames() int { return len(cl.chunks) * cl.count }

// spare is how many frames the class keeps free or on their way to it.
func (cl *class) spare() int { return min(max(cl.frames()/maxSpareShare, 2), maxSpare) }

const (
	maxSpare      = 32
	maxSpareShare = 16
)
