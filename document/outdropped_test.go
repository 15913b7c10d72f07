package document

import (
	"context"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// counted is documents, and what happens before one of them comes.
type counted struct {
	count, at, next int
	happens         func() error
}

func (m *counted) Next(context.Context) (document, error) {
	if m.next == m.count {
		return nil, io.EOF
	}
	m.next++
	if m.next == m.at {
		if err := m.happens(); err != nil {
			return nil, err
		}
	}
	return toDocument(bson.D{{Key: "_id", Value: m.next}})
}

func (m *counted) Close() error { return nil }

// $out fills a collection that nobody sees, and whoever drops the database drops that, too. $out made another one then, and put into place
// what it came to after that alone, as if it were all.
func TestOutOfADatabaseThatIsDroppedMeanwhileFails(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	d := s.Database("d")
	for _, at := range []int{1, 15_000, 25_000} { // before anything was written, between two batches, and in front of the last
		docs := &counted{count: 25_000, at: at, happens: func() error { return d.Drop(ctx) }}
		err := s.replaceCollection(ctx, namespace{"d", "c"}, docs, false)
		if CodeOf(err) != NamespaceNotFound {
			t.Errorf("dropped at %d: %v", at, err)
		}
		if list, err := d.Collections(ctx); len(list) > 0 || err != nil {
			n, _ := d.Lookup("c").Count(ctx, nil, nil)
			t.Errorf("dropped at %d: %v is left, with %d documents, %v", at, list, n, err)
		}
	}
}
