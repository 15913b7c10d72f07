package aggregate

import (
	"context"
	"errors"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// maxDensified is how many documents one $densify may make.
const maxDensified = 500_000

// extent says between which values $densify makes documents.
type extent uint8

const (
	full         extent = iota // the lowest and the highest value of all documents
	byPartition                // those of each partition
	explicitEnds               // low up to and without high
)

// densifyStage is $densify.
type densifyStage struct {
	field     []string
	partition []partitionField
	step      number.Number
	unit      string
	extent    extent
	low, high value
	sort      *sortkey.Pattern
}

// partitionField is a field that all documents of a partition have.
type partitionField struct {
	segments []string
	value    *expression.Expression
}

// after returns the value one step behind v; what lies behind the last date is behind all others too.
func (s *densifyStage) after(v value) value {
	if s.unit != "" {
		n, _ := s.step.Int64()
		ms, err := expression.DateAdd("$densify", v.DateTime(), n, s.unit, time.UTC)
		if err != nil {
			return value{Type: bsoncore.TypeMaxKey}
		}
		return dateValue(ms)
	}
	n, _ := number.Of(s.widened(v))
	return number.Add(n, s.step).Value()
}

// widened returns v as a document that is made has it: of the step's type, where that is the wider one.
func (s *densifyStage) widened(v value) value {
	if s.unit != "" {
		return v
	}
	n, _ := number.Of(v)
	return n.Widen(number.Widest(n.Type(), s.step.Type())).Value()
}

func (s *densifyStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	sorted := &sortCursor{in: in, sorter: scratch.NewSorter(x.o.allowance(), 0)}
	sorted.key = func(dst []byte, doc document) ([]byte, error) { return s.sort.Append(dst, path.Document(doc)) }
	c := &densifyCursor{s: s, in: sorted, byKey: map[string]*densified{}, collation: x.o.Collation, share: x.o.unspillable().Share()}
	if s.extent == explicitEnds && s.partition == nil {
		_, err := c.stateOf(fields())
		return c, err
	}
	return c, nil
}

// densifyCursor makes the documents that are missing between those of its sorted input.
type densifyCursor struct {
	s     *densifyStage
	in    Cursor
	byKey map[string]*densified
	list  []*densified
	base  value    // the lowest value of all
	top   value    // the highest one so far
	doc   document // the next of the input
	v     value    // its value
	state *densified
	// The fields of its partition.
	fields document
	ended  bool
	tail   int
	made   int
	held   int64         // bytes of the partitions
	share  scratch.Share // that they take
	key    []byte
	buf    []byte

	collation *collation.Collation // of the partitions' keys
}

// densified is a partition.
type densified struct {
	fields document
	next   value // to be made; missing before the first document
}

// densifiedCost is about how many bytes a partition takes beside its fields and their key.
const densifiedCost = 200

func (c *densifyCursor) stateOf(partition document) (*densified, error) {
	c.key = keyenc.Append(c.key[:0], documentValue(partition), false, c.collation)
	d := c.byKey[string(c.key)]
	if d == nil {
		d = &densified{fields: append(document(nil), partition...)}
		if c.s.extent == explicitEnds {
			d.next = c.s.low
		}
		if c.held += int64(len(partition)+len(c.key)) + densifiedCost; !c.share.Fits(c.held) {
			return nil, mongoerror.New(mongoerror.Code(6007200), "$densify exceeded memory limit of %d: its partitions need %d bytes", c.share.Most(), c.held)
		}
		c.byKey[string(c.key)] = d
		c.list = append(c.list, d)
	}
	return d, nil
}

// upTo returns the next document up to the one that was read: those that are made come first.
func (c *densifyCursor) upTo() (document, error) {
	if order.Compare(c.state.next, c.v, nil) < 0 && c.within(c.state.next) {
		return c.make(c.state, c.fields)
	}
	if order.Compare(c.state.next, c.v, nil) == 0 || c.s.extent == explicitEnds && order.Compare(c.s.low, c.v, nil) == 0 {
		c.state.next = c.s.after(c.v) // in the document's type of number; at the low end in that of the last such document
	}
	doc := c.doc
	c.doc = nil
	return doc, nil
}

// Next implements Cursor.
func (c *densifyCursor) Next(ctx context.Context) (document, error) {
	if !c.ended && c.doc == nil {
		plain, err := c.read(ctx)
		if errors.Is(err, io.EOF) {
			c.ended = true
			if c.s.extent == explicitEnds && len(c.list) == 0 {
				// Without a document there is no partition, but what lies between the ends is made.
				if _, err := c.stateOf(fields()); err != nil {
					return nil, err
				}
			}
		} else if plain != nil || err != nil {
			return plain, err
		}
	}
	if !c.ended {
		return c.upTo()
	}
	for ; c.tail < len(c.list) && c.s.extent != byPartition; c.tail++ {
		d := c.list[c.tail]
		if c.within(d.next) && (c.s.extent == explicitEnds || order.Compare(d.next, c.top, nil) <= 0) {
			return c.make(d, d.fields)
		}
	}
	return nil, io.EOF
}

func (c *densifyCursor) within(v value) bool {
	return c.s.extent != explicitEnds || order.Compare(v, c.s.high, nil) < 0
}

// read takes the next document of the input. One without a value is returned: nothing is made around it.
func (c *densifyCursor) read(ctx context.Context) (plain document, err error) {
	doc, err := c.in.Next(ctx)
	if err != nil {
		return nil, err
	}
	v := get(doc, c.s.field)
	switch {
	case isNullish(v):
		return doc, nil
	case v.Type != bsoncore.TypeDateTime && !isNumber(v):
		return nil, mongoerror.New(mongoerror.Code(5733201), "Densify field type must be numeric or a date")
	case isNumber(v) && c.s.unit != "":
		return nil, mongoerror.New(mongoerror.Code(6053600), "Encountered numeric densify value in collection when step has a date unit.")
	case !isNumber(v) && c.s.unit == "":
		return nil, mongoerror.New(mongoerror.Code(6053600), "Encountered date densify value in collection when step does not have a date unit.")
	}
	partition, err := c.partition(doc)
	if err != nil {
		return nil, err
	}
	state, err := c.stateOf(partition)
	if err != nil {
		return nil, err
	}
	c.doc, c.v, c.state, c.fields = doc, v, state, partition
	c.top = clone(v)
	if c.base.Type == 0 {
		c.base = c.top
	}
	if c.state.next.Type == 0 {
		if c.state.next = c.base; c.s.extent == byPartition {
			c.state.next = c.top
		}
	}
	return nil, nil
}

// partition makes the fields that all documents of a partition have.
func (c *densifyCursor) partition(doc document) (document, error) {
	out := fields()
	for _, f := range c.s.partition {
		v, err := f.value.Eval(doc)
		if err != nil {
			return nil, err
		}
		out = appendSet(nil, out, f.segments, v)
	}
	return out, nil
}

// make makes the next document of a partition, with its fields: those of the document that follows where there is one, as a collation
// may take different ones for equal.
func (c *densifyCursor) make(d *densified, fields document) (document, error) {
	if c.made++; c.made > maxDensified {
		return nil, mongoerror.New(mongoerror.Code(5897900), "Generated %d documents in $densify, which is over the limit of %d. Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents", c.made, maxDensified)
	}
	c.buf = appendSet(c.buf[:0], fields, c.s.field, c.s.widened(d.next))
	d.next = c.s.after(d.next)
	return c.buf, nil
}

// Close implements Cursor.
func (c *densifyCursor) Close() error {
	c.byKey, c.list = nil, nil
	c.share.Shrink(0)
	return c.in.Close()
}
