package codec

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"
)

var errStore = errors.New("the store is full")

// memory is a store of templates.
type memory struct {
	mu   sync.Mutex
	kept map[uint32][]byte
	left int // how many more it takes before it fails; negative: any number
}

func newMemory() *memory { return &memory{kept: map[uint32][]byte{}, left: -1} }

// Load spoils each definition behind fn, which may not keep it.
func (m *memory) Load(fn func(number uint32, definition []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(m.kept)) {
		definition := bytes.Clone(m.kept[number])
		if err := fn(number, definition); err != nil {
			return err
		}
		clear(definition)
	}
	return nil
}

func (m *memory) Store(number uint32, definition []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
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
