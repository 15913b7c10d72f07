package codec

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

var errStore = errors.New("the store is full")

// memory is a store of templates.
type memory struct {
	mu   sync.Mutex
	kept map[uint32][]byte
	left int  // how many more it takes before it fails; negative: any number
	full bool // it has no room

	unreadable uint32 // the number of a definition that cannot be read; 0: none
	read       int    // definitions
	reading    int    // Definitions that were not closed
}

func newMemory() *memory { return &memory{kept: map[uint32][]byte{}, left: -1} }

func (m *memory) Definitions() Definitions {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reading++
	return &definitions{m: m, rest: slices.Sorted(maps.Keys(m.kept))}
}

// definitions spoils each definition when the next one is asked for, as nobody may keep it.
type definitions struct {
	m    *memory
	rest []uint32
	last []byte
}

func (d *definitions) Next() (number uint32, definition []byte, ok bool) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	clear(d.last)
	if len(d.rest) == 0 || d.atUnreadable() {
		return 0, nil, false
	}
	number, d.rest = d.rest[0], d.rest[1:]
	d.last = bytes.Clone(d.m.kept[number])
	d.m.read++
	return number, d.last, true
}

func (d *definitions) atUnreadable() bool {
	return d.m.unreadable != 0 && len(d.rest) > 0 && d.rest[0] == d.m.unreadable
}

func (d *definitions) Close() error {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	clear(d.last)
	d.m.reading--
	if d.atUnreadable() {
		return errStore
	}
	return nil
}

func (m *memory) Store(number uint32, definition []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return fmt.Errorf("store: %w", ErrNoRoom)
	}
	if m.left == 0 {
		return errStore
	}
	m.left--
	if before, ok := m.kept[number]; ok && (number < dictionaryNumber || !bytes.HasPrefix(definition, before)) {
		return errors.New("a number was given twice, and not to a part with more entries")
	}
	m.kept[number] = bytes.Clone(definition)
	return nil
}

// templates returns how many templates are kept, and parts of dictionaries.
func (m *memory) templates() (templates, parts int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for number := range m.kept {
		if number < dictionaryNumber {
			templates++
		} else {
			parts++
		}
	}
	return templates, parts
}

func (m *memory) clone() *memory { return &memory{kept: maps.Clone(m.kept), left: -1} }
