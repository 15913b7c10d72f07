package differential

import (
	"fmt"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

// write is any write.
func (p *program) write() write {
	switch p.IntN(10) {
	case 0, 1, 2:
		return p.insertion()
	case 3:
		return p.updateMany()
	case 4:
		return p.deletion()
	case 5:
		return p.bulkWrite()
	}
	return p.writeOne()
}

// anyID is one of few of each type; several are equal.
func (p *program) anyID() any {
	i := p.IntN(40)
	switch p.IntN(14) {
	case 0:
		return int64(i)
	case 1:
		return float64(i) + pick(p.generator, 0, 0.5)
	case 2:
		return decimal(fmt.Sprint(i, ".0"))
	case 3:
		return fmt.Sprint("id", i)
	case 4:
		return bson.ObjectID{11: byte(i)}
	case 5:
		return bson.Binary{Subtype: byte(i % 2), Data: []byte{byte(i), 0}}
	case 6:
		return bson.DateTime(i - 3)
	case 7:
		return pick[any](p.generator, true, false, nil, bson.MinKey{}, bson.MaxKey{}, math.NaN(), math.Inf(-1), math.Copysign(0, -1), bson.Timestamp{T: 1, I: 1})
	case 8:
		return doc("x", int32(i%4), "y", nil)
	case 9:
		return doc("x", p.value(1))
	}
	return int32(i)
}

// anyDocument has some fields of all kinds, and may be large.
func (p *program) anyDocument() bson.D {
	d := p.changed(p.documents(1)[0].(bson.D))
	d[0].Value = p.anyID()
	if !p.chance(4) {
		d = append(d, bson.E{Key: "u", Value: p.unlike()})
	}
	if p.chance(12) {
		d = append(d, bson.E{Key: "big", Value: strings.Repeat("x", pick(p.generator, 10, 5000, 70_000, pick(p.generator, 300_000, 300_000, 300_000, 15<<20)))})
	}
	return d
}

// unlike is seldom the same.
func (p *program) unlike() any {
	n := p.IntN(300)
	switch p.IntN(10) {
	case 0:
		return bson.A{int32(n), int32(n + 1)}
	case 1:
		return float64(n)
	case 2:
		return fmt.Sprint("U", n)
	case 3:
		return fmt.Sprint("u", n)
	case 4:
		return doc("x", int64(n))
	case 5:
		return pick[any](p.generator, nil, bson.A{}, bson.A{nil}, bson.A{int32(1), int32(1), 1.0}, bson.A{bson.A{int32(n)}}, math.NaN(), decimal("NaN"))
	}
	return int32(n)
}

// insertion inserts one document, or many that have something in common.
func (p *program) insertion() write {
	n := pick(p.generator, 1, 1, 1, 5, 40)
	if p.chance(30) {
		n = 1000
	}
	same, value := pick(p.generator, "n", "a", "s", "l", "none"), p.value(3)
	var docs []bson.Raw
	for range n {
		d := p.anyDocument()
		for i := range d {
			if n > 1 && d[i].Key == same {
				d[i].Value = value
			}
		}
		if n > 1 && p.IntN(8) > 0 {
			d[0].Value = int32(p.IntN(400 + 1000*n))
		}
		docs = append(docs, raw(p.t, d))
	}
	if n == 1 {
		return write{text: "insert " + short(docs[0].String()), do: func(c *document.Collection) (string, error) {
			id, err := c.Insert(ctx, docs[0])
			return id.String(), err
		}}
	}
	if p.chance(2) {
		return write{text: fmt.Sprintf("insert %d together", n), several: true, do: func(c *document.Collection) (string, error) {
			n, err := c.InsertMany(ctx, docs, nil)
			return fmt.Sprint(n), err
		}}
	}
	return write{text: fmt.Sprintf("insert %d", n), several: true, many: true, do: func(c *document.Collection) (string, error) {
		for i, d := range docs {
			if _, err := c.Insert(ctx, d); err != nil {
				return "", fmt.Errorf("%d: %w", i, err)
			}
		}
		return "", nil
	}}
}

// changes is an update with its array filters; nothing in it is of the moment.
func (p *program) changes() (u, arrayFilters any) {
	u = p.update()
	if d, ok := u.(bson.D); ok && len(d) > 0 && d[0].Key[0] == '$' && p.chance(3) {
		u = pick(p.generator, doc("$set", doc("u", p.unlike())), doc("$unset", doc("u", "")), doc("$push", doc("l", doc("$each", p.list(200, p.number)))),
			doc("$push", doc("a", doc("$each", bson.A{p.value(2)}, "$position", int32(0), "$slice", int32(4)))), doc("$set", doc("big", strings.Repeat("y", p.IntN(9000)))),
			doc("$rename", doc("u", "n", "a", "b")), doc("$set", doc("a.1.x", p.value(1), "o.2", p.object(2))))
	}
	if strings.Contains(fmt.Sprint(u), "$currentDate") {
		u = doc("$set", doc("t", p.date()))
	}
	if usesFilters(doc("u", u)) {
		arrayFilters = bson.A{pick(p.generator, doc("i", p.condition(0)), doc("i.x", p.condition(0)))}
	}
	return u, arrayFilters
}

// someFilter matches few documents, many or all.
func (p *program) someFilter() bson.D {
	switch p.IntN(8) {
	case 0:
		return bson.D{}
	case 1:
		return doc("_id", p.anyID())
	case 2:
		return doc("u", p.unlike())
	}
	for {
		if f := p.anyFilter(1); !strings.Contains(shown(p.t, f), "$toString") { // which fails for some types of _id, in whichever document it comes to
			return f
		}
	}
}

// writeOne changes one document: the first of an order that leaves no choice.
func (p *program) writeOne() write {
	u, arrayFilters := p.changes()
	filter, order := p.someFilter(), p.sort()
	upsert := p.chance(5)
	if upsert {
		filter = doc("_id", p.anyID())
	}
	text := shown(p.t, doc("q", filter, "u", u, "sort", order, "upsert", upsert, "arrayFilters", arrayFilters))
	if p.chance(3) {
		o := document.ModifyOptions{Sort: order, Upsert: upsert, ArrayFilters: arrayFilters, New: p.chance(2)}
		if o.Remove = !upsert && p.chance(4); o.Remove {
			u, o.New, o.ArrayFilters = nil, false, nil
		}
		return write{text: fmt.Sprintf("findAndModify %s %t %t", short(text), o.New, o.Remove), do: func(c *document.Collection) (string, error) {
			d, r, err := c.FindAndModify(ctx, filter, u, &o)
			if err == document.ErrNotFound {
				return "none " + described(r), nil
			}
			if err != nil {
				return "", err
			}
			return d.String() + described(r), err
		}}
	}
	o := document.UpdateOptions{Sort: order, Upsert: upsert, ArrayFilters: arrayFilters}
	return write{text: "update " + short(text), do: func(c *document.Collection) (string, error) {
		r, err := c.Apply(ctx, filter, u, &o)
		return described(r), err
	}}
}

func (p *program) updateMany() write {
	u, arrayFilters := p.changes()
	for !operators(u) {
		u, arrayFilters = p.changes()
	}
	filter := p.someFilter()
	o := document.UpdateOptions{Many: true, ArrayFilters: arrayFilters}
	return write{text: "update many " + short(shown(p.t, doc("q", filter, "u", u, "arrayFilters", arrayFilters))), many: true, passing: true, do: func(c *document.Collection) (string, error) {
		r, err := c.Apply(ctx, filter, u, &o)
		return described(r), err
	}}
}

// operators reports whether an update is no replacement.
func operators(u any) bool {
	d, ok := u.(bson.D)
	return !ok || len(d) > 0 && d[0].Key[0] == '$'
}

func (p *program) deletion() write {
	filter := p.someFilter()
	if p.chance(2) {
		filter = doc("_id", doc("$gte", p.IntN(400), "$lt", p.IntN(400)))
	}
	return write{text: "delete " + shown(p.t, filter), many: true, do: func(c *document.Collection) (string, error) {
		n, err := c.Delete(ctx, filter, &document.DeleteOptions{Many: true})
		return fmt.Sprint(n), err
	}}
}

// bulkWrite is several statements in one call.
func (p *program) bulkWrite() write {
	var list []document.Statement
	var text []string
	for range 1 + p.IntN(12) {
		s := document.Statement{Filter: pick(p.generator, doc("_id", p.anyID()), doc("u", p.unlike()))}
		s.Options.Sort = p.sort()
		if p.chance(2) {
			s.Filter, s.Options.Sort = doc("_id", p.anyID()), nil
			s.Options.Upsert = p.chance(3)
		}
		if !p.chance(5) || s.Options.Upsert {
			s.Update, s.Options.ArrayFilters = p.changes()
		} else {
			s.Filter, s.Options.Sort = doc("_id", p.anyID()), nil
		}
		list = append(list, s)
		text = append(text, shown(p.t, doc("q", s.Filter, "u", s.Update)))
	}
	return write{text: "bulk " + short(strings.Join(text, ", ")), many: true, passing: true, do: func(c *document.Collection) (did string, failed error) {
		c.ApplyMany(ctx, list, func(i int, r *document.UpdateResult, err error) bool {
			did += described(r)
			failed = err
			return err == nil
		})
		return did, failed
	}}
}

func described(r *document.UpdateResult) string {
	if r == nil {
		return ""
	}
	return fmt.Sprint(r.Matched, " ", r.Modified, " ", r.UpsertedID, "; ")
}

func short(text string) string {
	const most = 600
	if len(text) > most {
		return fmt.Sprintf("%s... (%d bytes)", text[:most], len(text))
	}
	return text
}
