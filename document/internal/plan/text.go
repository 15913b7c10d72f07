package plan

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
)

// String returns the tree of stages, one a line, for people and tests.
func (p *Plan) String() string { return Text(p.Root) }

// Text returns a stage and those below it, one a line.
func Text(s Stage) string {
	var b strings.Builder
	write(&b, s, 0)
	return b.String()
}

func write(b *strings.Builder, s Stage, depth int) {
	fmt.Fprintf(b, "%s%s", strings.Repeat("  ", depth), s.Name())
	switch s := s.(type) {
	case *CollectionScan:
		backward(b, s.Backward)
	case *IDLookup:
		fmt.Fprintf(b, " %s", s.ID)
	case *IndexScan:
		writeScan(b, s)
	case *Near:
		fmt.Fprintf(b, " %s", s.Scan.Definition.Name)
	case *DistinctScan:
		writeScan(b, s.Scan)
	case *CountScan:
		writeScan(b, s.Scan)
	case *Sort:
		fmt.Fprintf(b, " %s", json(s.Pattern))
		if s.Limit > 0 {
			fmt.Fprintf(b, " limit=%d", s.Limit)
		}
	case *SortMerge:
		fmt.Fprintf(b, " %s", json(s.Pattern))
	case *Skip:
		fmt.Fprintf(b, " %d", s.N)
	case *Limit:
		fmt.Fprintf(b, " %d", s.N)
	case *Count:
		if s.Skip > 0 || s.Limit > 0 {
			fmt.Fprintf(b, " skip=%d limit=%d", s.Skip, s.Limit)
		}
	}
	if f := filterOf(s); f != nil {
		fmt.Fprintf(b, " filter=%s", json(describe(f)))
	}
	b.WriteByte('\n')
	for _, in := range s.Inputs() {
		write(b, in, depth+1)
	}
}

func backward(b *strings.Builder, yes bool) {
	if yes {
		b.WriteString(" backward")
	}
}

func writeScan(b *strings.Builder, s *IndexScan) {
	fmt.Fprintf(b, " %s", s.Definition.Name)
	backward(b, s.Backward)
	if s.Bounds.Lower != nil || s.Bounds.Upper != nil {
		b.WriteString(" min/max")
	}
	if s.Dedup {
		b.WriteString(" dedup")
	}
	for i, c := range s.Definition.Components {
		name := c.Path
		if c.Wildcard {
			fmt.Fprintf(b, " $_path=%s", list(s.Bounds.Paths, s.Backward))
			name = s.Path
		}
		fmt.Fprintf(b, " %s=%s", name, list(s.Bounds.Fields[i], (c.Kind == index.Descending) != s.Backward))
	}
}

// list returns intervals as text on one line.
func list(intervals []index.Interval, backward bool) string {
	if full(intervals) {
		return "all"
	}
	values, err := texts(intervals, backward).Values()
	if err != nil {
		return err.Error()
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.StringValue()
	}
	return strings.Join(out, " ")
}

// json returns a document in relaxed Extended JSON.
func json(d bsoncore.Document) string {
	out, err := bson.MarshalExtJSON(bson.Raw(d), false, false)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
