package document

import (
	"context"
	"errors"
	"sync/atomic"
)

// syncOnce is calls that wait for one sync together. It goes with the context of each.
type syncOnce struct {
	exposed *atomic.Bool // others may see a commit of theirs that a power cut can still undo
	every   bool         // no commit waits; else only those of which more follow do not
}

type syncOnceKey struct{}

// SyncOnce runs fn, which makes so many calls with the context that it is given, at least, one after the other. In the Durable profile
// their commits do not wait for a sync each: when SyncOnce returns all of them are durable, also when fn has failed, or the error is
// that of the sync. A single call that makes several commits, as ApplyMany does or an update of many documents, waits with the last one
// as it does otherwise.
//
// Others see such a commit before that, and what they are told may rest on it without a commit of their own, as when there is nothing
// left for an update to do. Who promises them that it lasts calls SyncSeen first.
func (s *Store) SyncOnce(ctx context.Context, calls int, fn func(ctx context.Context) error) error {
	if !s.durable {
		return fn(ctx)
	}
	once := &syncOnce{exposed: new(atomic.Bool), every: calls > 1}
	err := fn(context.WithValue(ctx, syncOnceKey{}, once))
	if !once.exposed.Load() {
		return err
	}
	if failed := s.db.SyncCommits(); failed != nil {
		return errors.Join(err, failed) // SyncSeen goes on failing
	}
	s.exposed.Add(-1)
	return err
}

// SyncSeen returns when every commit that anybody can have seen so far is durable, as far as the profile acknowledges nothing that is
// not. It costs a sync while SyncOnce is at work somewhere, and nothing otherwise.
func (s *Store) SyncSeen() error {
	if s.exposed.Load() == 0 {
		return nil
	}
	return s.db.SyncCommits()
}

// moreFollow returns the context for a commit after which the same call makes another one.
func moreFollow(ctx context.Context) context.Context {
	once, ok := ctx.Value(syncOnceKey{}).(*syncOnce)
	if !ok || once.every {
		return ctx
	}
	return context.WithValue(ctx, syncOnceKey{}, &syncOnce{exposed: once.exposed, every: true})
}

// waits reports whether a commit with the context waits for a sync. If not, it counts as exposed from now on, which is before anybody
// can see it.
func (s *Store) waits(ctx context.Context) bool {
	once, ok := ctx.Value(syncOnceKey{}).(*syncOnce)
	if !ok || !once.every {
		return true
	}
	s.exposed.Add(1)
	if once.exposed.Swap(true) {
		s.exposed.Add(-1) // it is counted already
	}
	return false
}
