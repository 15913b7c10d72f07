package codec

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
)

// table is all templates of a codec. It is replaced, never changed.
type table struct {
	templates []*template          // by number; nil: there is none
	shapes    map[string]*template // by shape
}

// at returns the template of a number, or nil.
func (t *table) at(number int) *template {
	if uint(number) >= uint(len(t.templates)) {
		return nil
	}
	return t.templates[number]
}

// with returns a table that has one more.
func (t *table) with(added *template) *table {
	next := &table{templates: slices.Clone(t.templates), shapes: maps.Clone(t.shapes)}
	next.add(added)
	return next
}

// add puts a template into a table that nobody else has seen yet.
func (t *table) add(added *template) {
	if t.shapes == nil {
		t.shapes = map[string]*template{}
	}
	for len(t.templates) <= added.number {
		t.templates = append(t.templates, nil)
	}
	t.templates[added.number] = added
	if _, ok := t.shapes[added.shape]; !ok {
		t.shapes[added.shape] = added
	}
}

// templateOf returns the template of doc's shape, making it when the shape has been seen before; nil when there is none.
func (c *Codec) templateOf(doc []byte, outside bool) (*template, error) {
	var room [1024]byte
	shape, ok := appendDefinition(append(room[:0], definitionTemplate), doc, outside, 0)
	if !ok {
		return nil, nil
	}
	all := c.table.Load()
	if t := all.shapes[string(shape)]; t != nil || len(all.templates) >= MaxTemplates {
		return t, nil
	}
	return c.define(bytes.Clone(shape), doc)
}

// define makes a template of the shape of doc when it has been seen before.
func (c *Codec) define(shape, doc []byte) (*template, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.table.Load()
	if t := old.shapes[string(shape)]; t != nil {
		return t, nil
	}
	if len(old.templates) >= MaxTemplates || c.defined+len(shape) > MaxDefinitions || !c.seen(shape) {
		return nil, nil
	}
	number := len(old.templates)
	_, p, err := c.compile(number, shape)
	if err != nil {
		return nil, err
	}
	definition := p.relate(doc)
	t, _, err := c.compile(number, definition)
	if err != nil {
		return nil, err
	}
	if err := c.store.Store(uint32(number), definition); err != nil {
		return nil, fmt.Errorf("codec: store template %d: %w", number, err)
	}
	c.defined += len(definition)
	c.table.Store(old.with(t))
	return t, nil
}

// seen reports whether a shape has been seen lately, and remembers that it has been now.
func (c *Codec) seen(shape []byte) bool {
	if c.missed++; c.shapes == nil || (c.missed > 8*len(c.shapes) && len(c.shapes) < rememberedShapesMax) {
		c.shapes, c.missed = make([]uint64, max(rememberedShapes, 8*len(c.shapes))), 0
	}
	hash := maphash.Bytes(c.seed, shape) | 1
	place := &c.shapes[hash>>32%uint64(len(c.shapes))]
	again := *place == hash
	*place = hash
	return again
}

// part is a piece of a dictionary as it is stored.
type part struct {
	path     []byte
	patterns bool
	first    int    // number of its first entry
	count    int    // of its entries
	entries  []byte // as they are stored
	number   uint32
	column   *column // nil: there are too many
}

// loading is memory for what is known of parts while dictionaries are made of them. A store of many collections loads those of one after
// the other.
type loading struct {
	parts       []part
	definitions []byte // the parts alias it, or what it was before it grew
}

var loadings = sync.Pool{New: func() any { return new(loading) }}

// reload takes in what the store holds. The caller holds the lock.
func (c *Codec) reload() error {
	next, defined := &table{}, 0
	l := loadings.Get().(*loading)
	defer func() {
		clear(l.parts)
		l.parts, l.definitions = l.parts[:0], l.definitions[:0]
		loadings.Put(l)
	}()
	err := c.store.Load(func(number uint32, definition []byte) error {
		switch {
		case number >= dictionaryNumber:
			from := len(l.definitions)
			l.definitions = append(l.definitions, definition...)
			p, err := parsePart(number, l.definitions[from:])
			l.parts = append(l.parts, p)
			return err
		case number >= MaxTemplates || len(definition) == 0 || definition[0] != definitionTemplate:
			return fmt.Errorf("codec: template %d of %d bytes: %w", number, len(definition), ErrCorrupt)
		}
		t := c.table.Load().at(int(number))
		if t == nil || t.definition != string(definition) {
			var err error
			if t, _, err = c.compile(int(number), definition); err != nil {
				return err
			}
		}
		defined += len(definition)
		next.add(t)
		return nil
	})
	if err != nil {
		return fmt.Errorf("codec: load templates: %w", err)
	}
	c.defined = defined
	c.table.Store(next)
	return c.takeParts(l.parts)
}

// takeParts appends to the dictionaries what is not in them yet. Each is published once, however many parts it has.
func (c *Codec) takeParts(parts []part) error {
	slices.SortFunc(parts, func(a, b part) int { return int(a.number) - int(b.number) })
	fresh, last := c.withRoom(parts), c.parts
	for i := range parts {
		p := &parts[i]
		if p.number < dictionaryNumber+c.parts {
			continue
		}
		d := fresh[p.column]
		if d == nil || d.count() != p.first || p.first+p.count > MaxEntries {
			return fmt.Errorf("codec: part %d of a dictionary, entries from %d of %q: %w", p.number-dictionaryNumber, p.first, p.path, ErrCorrupt)
		}
		p.addTo(d)
		last = p.number - dictionaryNumber + 1
	}
	for col, d := range fresh {
		c.publish(col, d)
	}
	c.parts = last
	return nil
}

// columnOf returns the column that a part is of, or nil when there are too many columns.
func (c *Codec) columnOf(p *part) *column {
	col := c.columns[string(p.path)]
	if col == nil {
		col = c.column(string(p.path))
	}
	if p.patterns && col != nil {
		col = col.patterns
	}
	return col
}

// withRoom returns dictionaries that have what is known, and room for the parts, whose columns it finds.
func (c *Codec) withRoom(parts []part) map[*column]*dictionary {
	type room struct{ bytes, entries int }
	rooms := map[*column]room{}
	for i := range parts {
		p := &parts[i]
		if p.number < dictionaryNumber+c.parts {
			continue
		}
		if p.column = c.columnOf(p); p.column != nil {
			r := rooms[p.column]
			rooms[p.column] = room{r.bytes + len(p.entries) + 4*p.count, r.entries + p.count}
		}
	}
	fresh := make(map[*column]*dictionary, len(rooms))
	for col, r := range rooms {
		d := col.state.Load().next()
		d.arena, d.ends = slices.Grow(d.arena, r.bytes), slices.Grow(d.ends, r.entries)
		fresh[col] = d
	}
	return fresh
}
