package bucket

import (
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/order"
)

// Bounds of a bucket: those of MongoDB.
const (
	maxMeasurements = 1000
	maxBucketBytes  = 125 << 10 // of measurements, when there is more than one
)

// Packer makes buckets of version 1 of measurements. It is used for one bucket after the other.
type Packer struct {
	Fields
	Span, Rounding time.Duration        // of the times of a bucket
	Collation      *collation.Collation // of the strings in control.min and control.max; may be nil

	meta     bsoncore.Value // Type 0: none
	first    int64          // the time from which on the bucket reaches, in milliseconds
	count    int
	bytes    int
	columns  []packedColumn
	byName   map[string]int
	min, max bound
}

// packedColumn is the values of a field so far.
type packedColumn struct {
	name string
	body []byte
}

// Empty reports whether the bucket has no measurement yet.
func (p *Packer) Empty() bool { return p.count == 0 }

// Fits reports whether a measurement belongs into the bucket that is being made.
func (p *Packer) Fits(doc bsoncore.Document) bool {
	if p.count == 0 {
		return true
	}
	at := doc.Lookup(p.Time).DateTime()
	meta := p.metaOf(doc)
	if p.count == maxMeasurements || p.bytes+len(doc) > maxBucketBytes || at < p.first || at >= p.first+p.Span.Milliseconds() ||
		meta.Type != p.meta.Type || string(meta.Data) != string(p.meta.Data) {
		return false
	}
	elements, _ := doc.Elements() // of a stored document
	for _, e := range elements {
		if x := p.min.parts[e.Key()]; x != nil && !x.like(e.Value()) {
			return false
		}
	}
	return true
}

func (p *Packer) metaOf(doc bsoncore.Document) bsoncore.Value {
	if p.Meta == "" {
		return bsoncore.Value{}
	}
	return doc.Lookup(p.Meta)
}

// Add puts a measurement, which fits, into the bucket.
func (p *Packer) Add(doc bsoncore.Document) error {
	elements, err := doc.Elements()
	if err != nil {
		return err
	}
	if p.count == 0 {
		p.begin(doc)
	}
	for _, e := range elements {
		name, v := e.Key(), e.Value()
		if name == p.Meta && p.Meta != "" {
			continue
		}
		i, ok := p.byName[name]
		if !ok {
			i = len(p.columns)
			p.byName[name] = i
			p.columns = append(p.columns, packedColumn{name: name})
		}
		c := &p.columns[i]
		c.body = bsoncore.AppendValueElement(c.body, strconv.Itoa(p.count), v)
		p.min.part(name).take(v, -1, p.Collation)
		p.max.part(name).take(v, 1, p.Collation)
	}
	p.count++
	p.bytes += len(doc)
	return nil
}

// begin starts a bucket with its first measurement.
func (p *Packer) begin(doc bsoncore.Document) {
	at, unit := doc.Lookup(p.Time).DateTime(), p.Rounding.Milliseconds()
	p.first = at - (at%unit+unit)%unit
	meta := p.metaOf(doc)
	p.meta = bsoncore.Value{Type: meta.Type, Data: append([]byte(nil), meta.Data...)}
	p.byName = map[string]int{}
	p.min, p.max = bound{kind: bsoncore.TypeEmbeddedDocument}, bound{kind: bsoncore.TypeEmbeddedDocument}
	p.min.part(p.Time).set(bsoncore.Value{Type: bsoncore.TypeDateTime, Data: bsoncore.AppendDateTime(nil, p.first)})
}

// Finish returns the bucket, and makes room for the next one. Its _id is made of its time and of a number that no other bucket of this
// time has.
func (p *Packer) Finish(number uint64) bsoncore.Document {
	var id [12]byte
	for i, seconds := 0, uint32(p.first/1000); i < 4; i++ {
		id[i] = byte(seconds >> (24 - 8*i))
	}
	for i := range 8 {
		id[4+i] = byte(number >> (56 - 8*i))
	}
	control := bsoncore.NewDocumentBuilder().AppendInt32("version", 1).AppendValue("min", p.min.value()).AppendValue("max", p.max.value())
	b := bsoncore.NewDocumentBuilder().AppendObjectID("_id", id).AppendDocument("control", control.Build())
	if p.meta.Type != 0 {
		b.AppendValue("meta", p.meta)
	}
	data := bsoncore.NewDocumentBuilder()
	for _, c := range p.columns {
		start, body := bsoncore.AppendDocumentStart(nil)
		body, _ = bsoncore.AppendDocumentEnd(append(body, c.body...), start) // which fails on a wrong place only
		data.AppendDocument(c.name, body)
	}
	p.count, p.bytes, p.columns = 0, 0, nil
	return b.AppendDocument("data", data.Build()).Build()
}

// bound is the least or greatest of values: of documents by their fields, of arrays by their elements, as control.min and control.max
// have them.
type bound struct {
	kind  bsoncore.Type // 0: nothing yet
	data  []byte        // of a value without parts
	names []string
	parts map[string]*bound
}

// part returns the bound of a field or element.
func (b *bound) part(name string) *bound {
	if x := b.parts[name]; x != nil {
		return x
	}
	if b.parts == nil {
		b.parts = map[string]*bound{}
	}
	x := &bound{}
	b.names, b.parts[name] = append(b.names, name), x
	return x
}

func (b *bound) set(v bsoncore.Value) { *b = bound{kind: v.Type, data: append([]byte(nil), v.Data...)} }

// like reports whether a value is of the type that the field has had so far, with all its parts: MongoDB does not mix types in a
// bucket.
func (b *bound) like(v bsoncore.Value) bool {
	if b.kind == 0 {
		return true
	}
	if order.ClassOf(v.Type) != order.ClassOf(b.kind) {
		return false
	}
	if !nested(v.Type) {
		return true
	}
	elements, _ := bsoncore.Document(v.Data).Elements()
	for _, e := range elements {
		if x := b.parts[e.Key()]; x != nil && !x.like(e.Value()) {
			return false
		}
	}
	return true
}

func nested(t bsoncore.Type) bool {
	return t == bsoncore.TypeEmbeddedDocument || t == bsoncore.TypeArray
}

// take takes in a value like those before: sign is -1 for the least, 1 for the greatest.
func (b *bound) take(v bsoncore.Value, sign int, c *collation.Collation) {
	if !nested(v.Type) {
		if b.kind == 0 || order.Compare(v, bsoncore.Value{Type: b.kind, Data: b.data}, c)*sign > 0 {
			b.set(v)
		}
		return
	}
	b.kind = v.Type
	elements, _ := bsoncore.Document(v.Data).Elements() // of a stored document
	for _, e := range elements {
		b.part(e.Key()).take(e.Value(), sign, c)
	}
}

// value makes the value of a bound.
func (b *bound) value() bsoncore.Value {
	if b.kind != bsoncore.TypeEmbeddedDocument && b.kind != bsoncore.TypeArray {
		return bsoncore.Value{Type: b.kind, Data: b.data}
	}
	start, dst := bsoncore.AppendDocumentStart(nil)
	for _, name := range b.names {
		dst = bsoncore.AppendValueElement(dst, name, b.parts[name].value())
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, start) // which fails on a wrong place only
	return bsoncore.Value{Type: b.kind, Data: dst}
}
