package document

import "sync"

// background is what a store does beside its calls, until it closes.
type background struct {
	mu      sync.Mutex
	ended   bool // nothing more is started
	running sync.WaitGroup
}

// start runs fn in a goroutine of its own. It answers false, and runs nothing, once end was called: a call that is on its way while the store
// closes may come after that.
func (b *background) start(fn func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.running.Go(fn)
	return true
}

// end waits until all that was started has ended, which its caller has told it to.
func (b *background) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.running.Wait()
}
