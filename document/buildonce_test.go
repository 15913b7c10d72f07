package document

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// whileBuilding builds an index of a, and calls fn before it is complete.
func whileBuilding(t *testing.T, fn func(c *Collection)) (c *Collection, err error) {
	t.Helper()
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	t.Cleanup(func() { s.Close() })
	c = s.Database(DefaultDatabase).Lookup("c")
	if _, err := c.Insert(t.Context(), JSON(`{"a": [1, 2]}`)); err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateIndex(t.Context(), Index{Keys: JSON(`{"a": 1}`), Progress: func(int64, int64) { fn(c) }})
	return c, err
}

// TestIndexesThatAreBeingBuiltAreNotModified: the build would go on with the index that was.
func TestIndexesThatAreBeingBuiltAreNotModified(t *testing.T) {
	c, err := whileBuilding(t, func(c *Collection) {
		if err := c.Modify(t.Context(), JSON(`{"index": {"name": "a_1", "hidden": true}}`)); CodeOf(err) != 12587 {
			t.Errorf("%v, want BackgroundOperationInProgressForNamespace", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := c.Indexes(t.Context()); err != nil || !list[1].Ready {
		t.Errorf("%+v, %v; want an index that is ready", list, err)
	}
}

// TestWhoMakesAnIndexOnceMoreWaitsForIt: whether it will be there is known when its build has ended.
func TestWhoMakesAnIndexOnceMoreWaitsForIt(t *testing.T) {
	again := Index{Keys: JSON(`{"a": 1}`)}
	var other sync.WaitGroup
	c, err := whileBuilding(t, func(c *Collection) {
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := c.CreateIndex(ended, again); !errors.Is(err, context.Canceled) {
			t.Errorf("one who cannot wait: %v", err)
		}
		other.Go(func() {
			if _, err := c.CreateIndex(t.Context(), again); err != nil {
				t.Errorf("one who waits: %v", err)
			}
		})
		if err := c.DropIndex(t.Context(), "a_1"); err != nil {
			t.Error(err)
		}
	})
	if CodeOf(err) != 276 {
		t.Errorf("the one whose index is dropped: %v, want IndexBuildAborted", err)
	}
	other.Wait()
	if list, err := c.Indexes(t.Context()); err != nil || len(list) != 2 || !list[1].Ready {
		t.Errorf("%+v, %v; want an index that is ready", list, err)
	}
}

// TestAnIndexThatIsLeftBehindByItsBuild is not waited for again and again.
func TestAnIndexThatIsLeftBehindByItsBuild(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	c := s.Database(DefaultDatabase).Lookup("c")
	if _, err := c.Insert(t.Context(), JSON(`{"a": 1}`)); err != nil {
		t.Fatal(err)
	}
	x, err := c.use()
	if err != nil {
		t.Fatal(err)
	}
	close(registered(t, x, false)[0].build.ended)
	if _, err := c.CreateIndex(t.Context(), Index{Keys: JSON(`{"a": 1}`)}); CodeOf(err) != 276 {
		t.Errorf("%v, want IndexBuildAborted", err)
	}
	if err := c.DropIndex(t.Context(), "a_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateIndex(t.Context(), Index{Keys: JSON(`{"a": 1}`)}); err != nil {
		t.Errorf("once it is dropped: %v", err)
	}
}
