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
	most     atomic.Int64
	sweeping sync.Mutex // held by who closes others; taken after all other locks but mu

	mu    sync.Mutex // taken after all other locks
	files []*file    // that are open, in any order
	hand  int        // the place in files of the one that was looked at last
}

// handlesFor is how many files a Store in fsys keeps open: half of those that the process may have.
func handlesFor(fsys vfs.FS) int64 {
	n := vfs.MostHandles(fsys)
	if n <= 0 {
		return usualHandles
	}
	return int64(min(max(n/2, leastHandles), mostHandles))
}

// enough closes handles where there are too many.
func (x *handles) enough() {
	most := x.most.Load()
	if x.open() <= most || !x.sweeping.TryLock() {
		return // or somebody is at it
	}
	defer x.sweeping.Unlock()
	for range 2 * x.open() { // once to take the marks away, and once more
		f := x.next(most - most/sweepShare)
		if f == nil {
			return
		}
		if !f.read.Swap(false) {
			f.rest()
		}
	}
}

// open is how many files are open.
func (x *handles) open() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return int64(len(x.files))
}

// next is the open file that the hand comes to, or nil where there are no more than enough.
func (x *handles) next(enough int64) *file {
	x.mu.Lock()
	defer x.mu.Unlock()
	if int64(len(x.files)) <= enough {
		return nil
	}
	x.hand = (x.hand + 1) % len(x.files)
	return x.files[x.hand]
}

// keepAll leaves all files open that are: their names may be another's from now on.
func (x *handles) keepAll() {
	x.sweeping.Lock()
	defer x.sweeping.Unlock()
	x.most.Store(math.MaxInt64)
}

// admit gives the file its handle, which may be closed from now on when nobody is inside. The caller calls enough when it holds no lock of the
// file's.
func (f *file) admit(h vfs.File) {
	x := f.handles
	x.mu.Lock()
	defer x.mu.Unlock()
	f.handle.Store(&h)
	f.place = len(x.files)
	x.files = append(x.files, f)
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
	h := f.expel()
	if h == nil {
		return nil
	}
	return (*h).Close()
}

// expel takes the handle from the file.
func (f *file) expel() *vfs.File {
	x := f.handles
	x.mu.Lock()
	defer x.mu.Unlock()
	h := f.handle.Swap(nil)
	if h == nil {
		return nil
	}
	last := len(x.files) - 1
	moved := x.files[last]
	x.files[f.place], moved.place = moved, f.place
	x.files[last] = nil
	x.files = x.files[:last]
	return h
}

// awaitRest returns when nobody closes the handle.
func (f *file) awaitRest() {
	f.opening.Lock()
	defer f.opening.Unlock()
}
