package fault

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pandodb/pando"
)

// cell is what a key may hold: nothing, when value is nil.
type cell struct {
	value  []byte
	expiry time.Time // zero: never
}

func (c cell) at(now time.Time) []byte {
	if !c.expiry.IsZero() && !now.Before(c.expiry) {
		return nil
	}
	return c.value
}

// table is a keyspace as the model has it.
type table struct {
	possible map[string][]cell // what each key may hold, the newest first; more than one after a write that failed
	earlier  map[string][]cell // what each held since all was durable, which a profile that may lose the last writes may bring back
	vague    bool              // to make it, or to drop it, failed: it may be there or not
	unknown  bool              // nobody knows what it holds, if it is there
}

func newTable() *table { return &table{possible: map[string][]cell{}, earlier: map[string][]cell{}} }

func (t *table) cells(key string) []cell {
	if c := t.possible[key]; len(c) > 0 {
		return c
	}
	return []cell{{}}
}

// inDefault is the name of the keyspace that is always there.
const inDefault = "default"

// stormModel is what a database may hold.
type stormModel struct {
	profile pando.Profile
	tables  map[string]*table // by keyspace
	moved   map[string]bool   // keyspaces that were made or dropped since all was durable, in a profile that may lose that
}

func newStormModel(profile pando.Profile) *stormModel {
	return &stormModel{profile, map[string]*table{inDefault: newTable()}, map[string]bool{}}
}

func (m *stormModel) names() []string { return slices.Sorted(maps.Keys(m.tables)) }

// wrote notes a write. One that met a full disk is not there; whether another one that failed is, nobody knows.
func (m *stormModel) wrote(space, key string, c cell, err error) {
	if m.profile != pando.Durable {
		m.wroteUnsynced(space, key, c, err)
		return
	}
	m.replace(space, key, c, err)
	if err == nil {
		m.settled() // what came before it is as durable as it is itself
	}
}

// wroteUnsynced notes a write that a power cut may take though it was acknowledged.
func (m *stormModel) wroteUnsynced(space, key string, c cell, err error) {
	t := m.tables[space]
	t.earlier[key] = append(t.earlier[key], t.cells(key)...)
	m.replace(space, key, c, err)
}

func (m *stormModel) replace(space, key string, c cell, err error) {
	if foundNoRoom(err) {
		return
	}
	t := m.tables[space]
	before := t.cells(key)
	t.possible[key] = []cell{c}
	if err != nil {
		t.possible[key] = append(t.possible[key], before...)
	}
}

// made notes a new keyspace, or one that may have been made.
func (m *stormModel) made(name string, err error) {
	m.tables[name] = newTable()
	m.tables[name].vague = err != nil
	m.move(name)
}

// dropped notes that a keyspace is gone.
func (m *stormModel) dropped(name string) {
	m.move(name)
	delete(m.tables, name)
}

func (m *stormModel) move(name string) {
	if m.profile != pando.Durable {
		m.moved[name] = true
	}
}

// settled notes that everything is durable.
func (m *stormModel) settled() {
	for _, t := range m.tables {
		clear(t.earlier)
	}
	clear(m.moved)
}

// lost notes that what is not durable may be gone: each key may hold what it held at any time since. (That history is cut at one moment
// for all of them is what package crash looks at.)
func (m *stormModel) lost() {
	for _, t := range m.tables {
		for key, cells := range t.earlier {
			t.possible[key] = append(t.cells(key), cells...)
		}
	}
}

// find compares the keyspaces that there are with those that may be. It returns what is to be dropped because nobody knows what it holds.
func (m *stormModel) find(there []string) (unknown []string, err error) {
	for _, name := range there {
		switch t := m.tables[name]; {
		case m.moved[name] || t != nil && t.unknown:
			unknown = append(unknown, name)
		case t == nil:
			return nil, fmt.Errorf("keyspace %q is there again", name)
		default:
			t.vague = false
		}
	}
	for _, name := range m.names() {
		switch {
		case slices.Contains(there, name):
		case m.tables[name].vague || m.moved[name]:
			delete(m.tables, name)
		default:
			return nil, fmt.Errorf("keyspace %q is gone", name)
		}
	}
	return unknown, nil
}

// allows reports whether a key may hold got between two moments.
func (m *stormModel) allows(space, key string, got []byte, from, to time.Time) bool {
	for _, c := range m.tables[space].cells(key) {
		for _, now := range []time.Time{from, to} {
			if want := c.at(now); (want == nil) == (got == nil) && bytes.Equal(want, got) {
				return true
			}
		}
	}
	return false
}

// presence tells whether a key may be there between two moments, and whether it must.
func (m *stormModel) presence(space, key string, from, to time.Time) (may, must bool) {
	must = true
	for _, c := range m.tables[space].cells(key) {
		a, b := c.at(from) != nil, c.at(to) != nil
		may, must = may || a || b, must && a && b
	}
	return may, must
}
