package document

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando"
)

// feed reads the storage's log in a goroutine of its own, ahead by a few events of those who take them.
type feed struct {
	events  chan event
	ahead   atomic.Int64  // bytes of the events that nobody has taken
	room    chan struct{} // told when one was taken
	stop    context.CancelFunc
	readers sync.WaitGroup
	pending *event
	until   uint64        // the newest change when the feed was opened
	caught  chan struct{} // closed when everything up to it has been read
}

// event is what is told of a change, on its way to who wants it, or the error that ended the feed.
type event struct {
	doc document // nil: nothing, but the feed has come this far
	at  token
	end bool // there will be no other behind it
	err error
}

// What a feed holds: so many events, or fewer large ones. Nobody may ever ask for them.
const (
	readAhead  = 64
	aheadBytes = 1 << 20 // and one event more
)

// errFeedEnded is what ends a feed of which there is nothing more to come.
var errFeedEnded = errors.New("nothing more will come")

// follow starts the feed. What r delivers sends the events.
func (f *feed) follow(s *Store, r *logReader, o pando.ChangesOptions) {
	f.until, f.caught, f.events, f.room = s.db.LastSeq(), make(chan struct{}), make(chan event, readAhead), make(chan struct{}, 1)
	var run context.Context
	run, f.stop = context.WithCancel(s.work)
	f.readers.Add(1)
	read := func() {
		defer f.readers.Done()
		defer close(f.events)
		f.read(run, s, r, o)
	}
	if !s.beside.start(read) {
		read() // which ends at once, since run has ended
	}
}

// read follows the log until there is nothing more to come. What there was when the feed was opened it reads by itself: the newest command
// of the log may be one of which no change tells, such as that of a Close, and so no change says that all of it has been read.
func (f *feed) read(ctx context.Context, s *Store, r *logReader, o pando.ChangesOptions) {
	if follow := o.Follow; follow && o.From <= f.until {
		o.Follow = false
		last, ok := f.readChanges(ctx, s, r, o)
		if !ok {
			close(f.caught)
			return
		}
		o.Follow, o.From = true, max(last, f.until)+1
	}
	if o.Follow {
		close(f.caught)
	} else {
		defer close(f.caught)
	}
	f.readChanges(ctx, s, r, o)
}

// readChanges hands the changes to r, which sends what they mean. It returns the number of the last one, and false if that was the end of
// the feed.
func (f *feed) readChanges(ctx context.Context, s *Store, r *logReader, o pando.ChangesOptions) (last uint64, ok bool) {
	for c, err := range s.db.Changes(ctx, o) {
		if err == nil {
			last = c.Seq
			err = r.take(ctx, c)
		}
		if errors.Is(err, errFeedEnded) {
			return last, false
		}
		if err != nil {
			_ = f.send(ctx, event{err: err}) // nobody is there to be told
			return last, false
		}
	}
	return last, true
}

// send hands on an event, and waits until there is room for it.
func (f *feed) send(ctx context.Context, e event) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	size := int64(len(e.doc))
	for held := f.ahead.Load(); held > 0 && held+size > aheadBytes; held = f.ahead.Load() {
		select {
		case <-f.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.ahead.Add(size)
	select {
	case f.events <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// offer hands on an event if there is room for it.
func (f *feed) offer(e event) {
	select {
	case f.events <- e:
	default:
	}
}

// take returns the next event, nil when there is none yet. What happened before the feed was opened is waited for.
func (f *feed) take(ctx context.Context) (*event, error) {
	if e := f.pending; e != nil {
		f.pending = nil
		return e, e.err
	}
	select {
	case e, ok := <-f.events:
		return f.received(e, ok)
	default:
	}
	select {
	case e, ok := <-f.events:
		return f.received(e, ok)
	case <-f.caught:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case e, ok := <-f.events:
		return f.received(e, ok)
	default:
		return nil, nil
	}
}

// received makes room for another event in the place of one that was taken.
func (f *feed) received(e event, ok bool) (*event, error) {
	if !ok {
		return nil, errFeedEnded
	}
	if size := int64(len(e.doc)); size > 0 {
		f.ahead.Add(-size)
		select {
		case f.room <- struct{}{}:
		default: // it is told already
		}
	}
	return &e, e.err
}

// await waits until there is an event.
func (f *feed) await(ctx context.Context) error {
	if f.pending != nil {
		return nil
	}
	select {
	case e, ok := <-f.events:
		if !ok {
			return errFeedEnded
		}
		f.pending, _ = f.received(e, ok) // its error is that of take
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave ends the feed.
func (f *feed) leave() error {
	f.stop()
	f.readers.Wait()
	return nil
}
