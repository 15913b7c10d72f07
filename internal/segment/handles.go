package segment

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/vfs"
)

// A process may have so many files open, and a store has more where it is large: a thousand for each 64 GB, and with little memory, which
// makes segments small, many times as many. So the handles of files that nobody has read for a while are closed, and opened again by the
// next reader. The one to go is found as the clock algorithm finds a page (Corbato, "A Paging Experiment with the Multics System", 1968).

const (
	// leastHandles is how many files a Store keeps open wherever it runs, and mostHandles how many where there is no want of them: more
	// would take memory of the system, for files of which the oldest are hardly ever read.
	leastHandles = 4
	mostHandles  = 4096
	// usualHandles is how many it keeps open where the system does not tell how many there may be.
	usualHandles = 1024
	// sweepShare is the share of them that is closed at a time, so that few of those who open a file look for others to close.
	sweepShare = 8
)

// handles bounds how many files of a Store are open.
type handles struct {
	files *atomic.Pointer[fileTable] // of the store
	most  atomic.Int64
	open  atomic.Int64
	mu    sync.Mutex // held by who closes others; taken after all other locks
	hand  int        // the place in the table from which on the next one is looked for; under mu
}

// handlesFor is how many files a Store in fsys keeps open: half of those that the process may have.
func handlesFor(fsys vfs.FS) int64 {
	n := vfs.MostHandles(fsys)
	if n <= 0 {
		return usualHandles
	}
	return int64(min(max(n/2, leastHandles), mostHandles))
}

// opened counts a handle, and closes others where there are too many.
func (x *handles) opened() {
	if x.open.Add(1) <= x.most.Load() || !x.mu.TryLock() {
		return // or somebody is at it
	}
	defer x.mu.Unlock()
	files := x.files.Load().places
	enough := x.most.Load() - x.most.Load()/sweepShare
	for range 2 * len(files) { // once to take the marks away, and once more
		if x.open.Load() <= enough {
			return
		}
		x.hand = (x.hand + 1) % len(files)
		if f := files[x.hand]; f != nil && f.handle.Load() != nil && !f.read.Swap(false) {
			f.rest()
		}
	}
}

// keepAll leaves all files open that are: their names may be another's from now on.
func (x *handles) keepAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.most.Store(math.MaxInt64)
}

// rest closes the handle of a file in which nobody is inside, to which nothing is added any more, and of which nothing waits for a sync: a
// sync through another handle need not tell what befell the writes of this one. Who needs the handle next opens it again.
func (f *file) rest() {
	if !f.opening.TryLock() {
		return
	}
	defer f.opening.Unlock()
	if !f.references.CompareAndSwap(0, resting) {
		return
	}
	defer f.leave(resting)
	if f.growing.Load() || f.dirty.Load() {
		return
	}
	f.rested = true
	_ = f.unmap() // what fails to be given back was only read, and stays until the process ends
	_ = f.dismiss()
}

// dismiss closes the handle, if there is one.
func (f *file) dismiss() error {
	h := f.handle.Swap(nil)
	if h == nil {
		return nil
	}
	f.handles.open.Add(-1)
	return (*h).Close()
}

// awaitRest returns when nobody closes the handle.
func (f *file) awaitRest() {
	f.opening.Lock()
	defer f.opening.Unlock()
}
