package codec

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
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
func (c *Codec) templateOf(doc []byte) (*template, error) {
	var room [1024]byte
	shape, ok := appendDefinition(append(room[:0], definitionTemplate), doc, 0)
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
	c.defining <- struct{}{}
	defer func() { <-c.defining }()
	old := c.table.Load()
	if t := old.shapes[string(shape)]; t != nil {
		return t, nil
	}
	t, definition, err := c.newTemplate(len(old.templates), shape, doc)
	if t == nil || err != nil {
		return nil, err
	}
	err = c.store.Store(uint32(t.number), definition)
	if errors.Is(err, ErrNoRoom) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("codec: store template %d: %w", t.number, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.defined += len(definition)
	c.table.Store(old.with(t))
	return t, nil
}

// newTemplate makes a template that is in no store yet, or none.
func (c *Codec) newTemplate(number int, shape, doc []byte) (t *template, definition []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number >= MaxTemplates || c.defined+len(shape) > MaxDefinitions || !c.seen(shape) {
		return nil, nil, nil
	}
	var p compiler
	if _, err := p.compile(c, number, shape); err != nil {
		return nil, nil, err
	}
	definition = p.relate(doc)
	t, err = p.compile(c, number, definition)
	return t, definition, err
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

// load takes in the templates, and puts what comes to the dictionaries, of which the codec has none, into l. The caller holds the lock.
func (c *Codec) load(l *loading) error {
	all := c.store.Definitions()
	number, definition, ok, err := c.loadTemplates(l, all)
	for ; ok && err == nil; number, definition, ok = all.Next() {
		_, err = l.take(c, number, definition)
	}
	return loadError(errors.Join(err, all.Close()))
}

// loadTemplates takes in the templates, and returns the first part of a dictionary, which comes behind them; it is ok if there is one. The
// caller holds the lock.
func (c *Codec) loadTemplates(l *loading, all Definitions) (number uint32, definition []byte, ok bool, err error) {
	old, defined := c.table.Load(), 0
	l.parts, l.templates = 0, l.templates[:0]
	for {
		if number, definition, ok = all.Next(); !ok || number >= dictionaryNumber {
			break
		}
		if number >= MaxTemplates || len(definition) == 0 || definition[0] != definitionTemplate {
			return 0, nil, false, fmt.Errorf("codec: template %d of %d bytes: %w", number, len(definition), ErrCorrupt)
		}
		t := old.at(int(number))
		if t == nil || t.definition != string(definition) {
			if t, err = l.compiler.compile(c, int(number), definition); err != nil {
				return 0, nil, false, err
			}
		}
		defined += len(definition)
		l.templates = append(l.templates, t)
	}
	c.defined = defined
	if !slices.Equal(l.templates, old.templates) { // a passing codec often has the same again
		next := &table{}
		for _, t := range l.templates {
			next.add(t)
		}
		c.table.Store(next)
	}
	return number, definition, ok, nil
}

// loadError says of an error, if it is one, that it came when templates or dictionaries were loaded.
func loadError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("codec: load templates: %w", err)
}
