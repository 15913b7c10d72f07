// Package model checks the database against a model so simple that it is right by inspection: a map of maps, copied
// whenever somebody wants to remember it.
//
// Programs are random and reproducible: the seed is printed when one fails, and -seed replays it.
package model

import (
	"maps"
	"sort"
	"strings"
	"time"
)

// Value is what the model holds under a key.
type Value struct {
	Data   string
	Expiry int64 // Unix milliseconds, 0 is never
}

func (v Value) live() bool { return v.Expiry == 0 || v.Expiry > time.Now().UnixMilli() }

// State is a database: keyspaces by name, values by key.
type State map[string]map[string]Value

// Clone returns a copy of its own.
func (s State) Clone() State {
	c := State{}
	for name, m := range s {
		c[name] = maps.Clone(m)
	}
	return c
}

// Get returns a live value.
func (s State) Get(ks, key string) (string, bool) {
	v, ok := s[ks][key]
	return v.Data, ok && v.live()
}

// Put stores a value.
func (s State) Put(ks, key, value string, expiry int64) {
	if s[ks] != nil {
		s[ks][key] = Value{value, expiry}
	}
}

// Delete removes a key.
func (s State) Delete(ks, key string) { delete(s[ks], key) }

// Bounds are [Lo, Hi); nil is open.
type Bounds struct{ Lo, Hi []byte }

// Has reports whether key lies inside.
func (b Bounds) Has(key string) bool {
	return key >= string(b.Lo) && (b.Hi == nil || key < string(b.Hi))
}

// DeleteRange removes what lies in b.
func (s State) DeleteRange(ks string, b Bounds) {
	for k := range s[ks] {
		if b.Has(k) {
			delete(s[ks], k)
		}
	}
}

// Pair is a key with its value.
type Pair struct{ Key, Value string }

// Pairs returns the live pairs in b in order.
func (s State) Pairs(ks string, b Bounds) []Pair {
	var all []Pair
	for k, v := range s[ks] {
		if v.live() && b.Has(k) {
			all = append(all, Pair{k, v.Data})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Key < all[j].Key })
	return all
}

// Names returns the keyspaces in order.
func (s State) Names() []string {
	var names []string
	for n := range s {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// short abbreviates bytes for messages.
func short(s string) string {
	if len(s) <= 40 {
		return s
	}
	return s[:24] + "...(" + strings.Repeat("#", 1) + ")"
}
