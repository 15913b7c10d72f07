package race

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestStoreDoesEverythingAtOnce runs all kinds of calls of a document store from many goroutines, above all those that change what there is
// beside those that write to it, and closes the store in the middle of them. Nobody may wait for ever, and afterwards each index has to agree
// with its collection.
func TestStoreDoesEverythingAtOnce(t *testing.T) {
	for profile := pando.Durable; profile <= pando.Bench; profile++ {
		t.Run(profile.String(), func(t *testing.T) {
			fs := memfs.New()
			for round := range uint64(2) {
				storeChaos(t, fs, profile, round)
			}
			s := openStore(t, fs, profile)
			validateAll(t, s)
			r, err := s.DB().Check(context.Background())
			if err == nil {
				err = r.Err()
			}
			if err := errors.Join(err, s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func openStore(t *testing.T, fs *memfs.FS, profile pando.Profile) *document.Store {
	t.Helper()
	s, err := document.Open("db", storeOptions(fs, profile))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// storeOptions are those of a small store.
func storeOptions(fs vfs.FS, profile pando.Profile) *document.Options {
	return &document.Options{
		Storage: pando.Options{FS: fs, Profile: profile, MemoryBytes: 2 << 20, SyncInterval: time.Millisecond},
		FS:      fs, ScratchDir: "scratch", QueryMemoryBytes: 20_000, TTLInterval: 20 * time.Millisecond, History: 256 << 10,
	}
}

func storeChaos(t *testing.T, fs *memfs.FS, profile pando.Profile, round uint64) {
	s := openStore(t, fs, profile)
	var callers sync.WaitGroup
	for g := range uint64(10) {
		callers.Go(func() {
			c := storeCall{ctx: context.Background(), s: s, rng: rand.New(rand.NewPCG(round, g)), session: fmt.Sprint("session ", g)}
			for {
				err := c.anything()
				if errors.Is(err, document.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("%v (code %d)", err, document.CodeOf(err))
					return
				}
			}
		})
	}
	time.Sleep(storeChaosTime)
	closed := make(chan error, 1)
	go func() {
		err := s.Close()
		callers.Wait()
		closed <- err
	}()
	ends(t, "Close, and the calls that run", closed)
}

// validateAll compares all collections with their indexes.
func validateAll(t *testing.T, s *document.Store) {
	ctx := context.Background()
	databases, err := s.Databases(ctx)
	if err != nil {
		t.Error(err)
	}
	for _, name := range databases {
		db := s.Database(name)
		list, err := db.Collections(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, info := range list {
			if info.View {
				continue
			}
			if err := validated(ctx, db.Lookup(info.Name)); err != nil {
				t.Errorf("%s.%s: %v", name, info.Name, err)
			}
		}
	}
}

// validated says whether the indexes of a collection tell what its documents tell.
func validated(ctx context.Context, c *document.Collection) error {
	v, err := c.Validate(ctx)
	if err != nil {
		return err
	}
	for _, i := range v.Indexes {
		if i.Missing > 0 || i.Extra > 0 {
			return fmt.Errorf("index %s: %+v", i.Name, i)
		}
	}
	return nil
}
