package path

import (
	"maps"
	"slices"
)

// Names is a list of names, all different, that finds each of them as quickly however many there are. The zero value is an empty list.
type Names struct {
	List   []string
	places map[string]int // when there are many
}

// few is up to how many names are looked at one by one.
const few = 8

// Find returns the place of a name in the list, or -1.
func (n *Names) Find(name []byte) int {
	if n.places != nil {
		if i, ok := n.places[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, s := range n.List {
		if string(name) == s {
			return i
		}
	}
	return -1
}

// Add appends a name that is not in the list.
func (n *Names) Add(name string) {
	n.List = append(n.List, name)
	switch {
	case n.places != nil:
		n.places[name] = len(n.List) - 1
	case len(n.List) > few:
		n.places = make(map[string]int, 2*few)
		for i, s := range n.List {
			n.places[s] = i
		}
	}
}

// Clone returns a list of the same names that shares nothing with this one.
func (n *Names) Clone() Names {
	return Names{List: slices.Clone(n.List), places: maps.Clone(n.places)}
}
