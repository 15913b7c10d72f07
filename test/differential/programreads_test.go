package differential

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

// check compares all that both collections tell, and every index with its documents.
func (p *program) check() {
	p.t.Helper()
	order := &document.FindOptions{Sort: doc("_id", int32(1))}
	plain, indexed := all(p.t, p.plain, nil, order), all(p.t, p.indexed, nil, order)
	if !slices.EqualFunc(plain, indexed, func(a, b bson.Raw) bool { return slices.Equal(a, b) }) {
		p.t.Fatalf("%d documents, and %d without indexes\n%v\n%v", len(indexed), len(plain), indexed, plain)
	}
	v, err := p.indexed.Validate(ctx)
	p.must(err)
	for _, x := range v.Indexes {
		if x.Missing != 0 || x.Extra != 0 {
			p.t.Errorf("index %s: %+v", shown(p.t, p.specs[x.Name]), x)
		}
	}
	if v.Documents != int64(len(plain)) || len(v.Indexes) != len(p.specs) {
		p.t.Errorf("%d documents and %d indexes are compared, of %d and %d", v.Documents, len(v.Indexes), len(plain), len(p.specs))
	}
	for range 10 {
		p.compare(p.plain, p.indexed)
	}
}

// compare asks both collections the same.
func (p *program) compare(plain, indexed *document.Collection) {
	p.t.Helper()
	q := p.question()
	want, err := q.ask(plain, q.filter, nil)
	got, err2 := q.ask(indexed, q.filter, nil)
	p.expect(q, "", got, err2, want, err)
	for _, n := range p.names() {
		spec := shown(p.t, p.specs[n])
		if q.unhinted || strings.Contains(spec, "sparse") || strings.Contains(spec, `"2d`) || strings.Contains(spec, "$**") || strings.Contains(spec, "collation") {
			continue // who asks for it gets what it holds, or what it holds to be equal
		}
		got, err2 := q.ask(indexed, q.filter, n)
		if code := document.CodeOf(err2); code == 291 || code == document.BadValue && strings.Contains(err2.Error(), "hint") {
			continue // it is hidden, or does not hold what is asked for
		}
		if part := partOf(p.specs[n]); part != nil && !slices.Equal(q.rows(got), q.rows(want)) { // of what it holds, then
			if q.collated {
				continue // what it holds is by another collation
			}
			some, err := q.ask(plain, doc("$and", bson.A{q.filter, part}), nil)
			p.expect(q, n, got, err2, some, err)
			continue
		}
		p.expect(q, n, got, err2, want, err)
	}
}

// partOf is what the documents match that an index holds; nil: it holds all.
func partOf(spec bson.D) bson.D {
	for _, e := range spec {
		if e.Key == "partialFilterExpression" {
			return e.Value.(bson.D)
		}
	}
	return nil
}

func (p *program) expect(q question, hint string, got []string, err error, want []string, err2 error) {
	p.t.Helper()
	if (err == nil) != (err2 == nil) || document.CodeOf(err) != document.CodeOf(err2) {
		p.t.Errorf("%s, by index %q: %v; without: %v", q.text, hint, err, err2)
		return
	}
	got, want = q.rows(got), q.rows(want)
	if !slices.Equal(got, want) {
		p.t.Errorf("%s\nby index %q:    %s\nwithout: %s\nindexes: %s", q.text, hint, around(strings.Join(got, "\n"), strings.Join(want, "\n")),
			around(strings.Join(want, "\n"), strings.Join(got, "\n")), p.shownSpecs())
	}
}

// question is a query of some kind.
type question struct {
	text              string
	ordered, unhinted bool
	collated          bool // otherwise than the collection
	filter            bson.D
	ask               func(c *document.Collection, filter bson.D, hint any) ([]string, error)
}

// rows is an answer in an order that tells whether it is the same as another.
func (q *question) rows(answer []string) []string {
	if q.ordered {
		return answer
	}
	return slices.Sorted(slices.Values(answer))
}

func (p *program) question() question {
	filter := p.someFilter()
	o := document.FindOptions{}
	if p.chance(5) {
		o.Collation = p.collation()
	}
	q := question{collated: o.Collation != nil, filter: filter, text: fmt.Sprintf("%s %v", shown(p.t, filter), o.Collation)}
	switch p.IntN(8) {
	case 0:
		q.text = "count " + q.text
		q.ask = func(c *document.Collection, filter bson.D, hint any) ([]string, error) {
			o := o
			o.Hint = hint
			n, err := c.Count(ctx, filter, &o)
			return []string{fmt.Sprint(n)}, err
		}
	case 1:
		field := pick(p.generator, "a", "n", "s", "a.x", "t", "b", "u", "l", "o.x", "_id")
		q.unhinted = true
		q.text = "distinct " + field + " " + q.text
		q.ask = func(c *document.Collection, filter bson.D, hint any) ([]string, error) {
			values, err := c.Distinct(ctx, field, filter, &o)
			return each(values, func(v bson.RawValue) string {
				if o.Collation != nil || p.options.Collation != nil {
					return "" // which of the equal ones is given depends on the plan
				}
				return p.plain1(v)
			}), err
		}
	case 2:
		group := doc("_id", "$"+pick(p.generator, "n", "s", "a", "a.x", "t", "u"), "k", doc("$sum", int32(1)), "m", doc("$max", "$n"))
		rest := bson.A{doc("$group", group), doc("$sort", doc("_id", int32(1)))}
		q.text = "group " + shown(p.t, group) + q.text
		if o.Collation != nil || p.options.Collation != nil {
			rest = append(rest, doc("$project", doc("_id", int32(0), "k", int32(1))))
		}
		q.ask = func(c *document.Collection, filter bson.D, hint any) (rows []string, err error) {
			for d, err := range c.Aggregate(ctx, append(bson.A{doc("$match", filter)}, rest...), &document.AggregateOptions{Hint: hint, Collation: o.Collation}) {
				if err != nil {
					return nil, err
				}
				rows = append(rows, p.plain1(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: d}))
			}
			return rows, nil
		}
	default:
		p.find(&q, o)
	}
	return q
}

func (p *program) find(q *question, o document.FindOptions) {
	if p.chance(2) {
		o.Sort, q.ordered = p.sort(), true
		o.Skip, o.Limit = int64(p.IntN(3)), int64(p.IntN(12))
	}
	if p.chance(3) {
		o.Projection = doc(pick(p.generator, "s", "n", "a.x", "u", "t"), int32(1), "_id", p.integer(2))
	}
	q.text = fmt.Sprintf("find %s sort %v skip %d limit %d projection %v", q.text, o.Sort, o.Skip, o.Limit, o.Projection)
	q.ask = func(c *document.Collection, filter bson.D, hint any) (rows []string, err error) {
		o := o
		o.Hint = hint
		for d, err := range c.Find(ctx, filter, &o) {
			if err != nil {
				return nil, err
			}
			text := d.String()
			if o.Projection != nil { // an index gives the fields in its own order
				text = p.sortedFields(d)
			}
			rows = append(rows, text)
		}
		return rows, nil
	}
}

// plain1 is a value in words, in which numbers that are equal are the same.
func (p *program) plain1(v bson.RawValue) string {
	var d bson.D
	if err := bson.Unmarshal(raw(p.t, doc("v", v)), &d); err != nil {
		p.t.Fatal(err)
	}
	return shown(p.t, plain(d).(bson.D))
}

func each[T any](list []T, text func(T) string) []string {
	var out []string
	for _, v := range list {
		out = append(out, text(v))
	}
	return out
}

// sortedFields is a document in words, with its fields in the order of their names.
func (p *program) sortedFields(d bson.Raw) string {
	var fields bson.D
	if err := bson.Unmarshal(d, &fields); err != nil {
		p.t.Fatal(err)
	}
	slices.SortFunc(fields, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
	return shown(p.t, fields)
}
