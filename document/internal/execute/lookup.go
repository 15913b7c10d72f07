package execute

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/keyenc"
)

// Lookup reads single records without a plan. Its buffers are reused, so that it allocates nothing once they have grown. The zero
// value is ready; it is used by one goroutine at a time.
type Lookup struct{ entry, key, record []byte }

// ID returns the record with an _id, as it is stored, or pando.ErrNotFound. It is valid until the next call.
func (l *Lookup) ID(r Reader, c *Collection, id bsoncore.Value) (record []byte, err error) {
	l.entry = keyenc.Append(l.entry[:0], id, false, nil)
	l.key, l.record, err = c.byID(r, l.key[:0], l.record[:0], l.entry)
	return l.record, err
}

// Unique returns the record that c.Indexes[i], a unique index, has for a value of each component, or pando.ErrNotFound. It is valid
// until the next call.
func (l *Lookup) Unique(r Reader, c *Collection, i int, values ...bsoncore.Value) (record []byte, err error) {
	x := &c.Indexes[i]
	if !x.Definition.Unique || len(values) != len(x.Definition.Components) {
		return nil, fmt.Errorf("%s: look up %d values in the index %s, unique: %t", c.Namespace, len(values), x.Definition.Name, x.Definition.Unique)
	}
	l.entry = l.entry[:0]
	for n, v := range values {
		l.entry = x.Definition.AppendValue(l.entry, n, v)
	}
	if l.key, err = recordKey(r, x.Keyspace, l.key[:0], l.entry); err != nil {
		return nil, err
	}
	l.record, err = r.GetTo(c.Records, l.record[:0], l.key)
	return l.record, err
}

// Key returns the key of the record found last.
func (l *Lookup) Key() []byte { return l.key }
