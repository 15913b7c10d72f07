package query

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Condition is a part of a filter that is about one top-level field, and cannot fail.
type Condition struct{ group *group }

// Field is the name of the field.
func (c Condition) Field() string { return c.group.name }

// Holds reports whether the condition holds for a value of the field, of type 0 when it is missing. It does not keep the value.
func (c Condition) Holds(v bsoncore.Value) bool {
	for _, f := range c.group.fields {
		if ok, err := f.value(v, nil); !ok || err != nil {
			return false
		}
	}
	return true
}

// Conditions returns what Match asks of a document before anything that can fail: where one of them does not hold, the document does not
// match. It matches where all do when the filter is nothing else.
func (f *Filter) Conditions() (list []Condition, nothingElse bool) {
	made := f.matcher
	if late, ok := made.(*lateMatcher); ok {
		made = late.matcher()
	}
	parts := []matcher{made}
	switch m := made.(type) {
	case *allOf:
		parts = m.groups
	case *field:
		parts[0] = &group{name: m.first, fields: []*field{m}}
	}
	for _, m := range parts {
		g, ok := m.(*group)
		if !ok || !g.isSafe() {
			return list, false
		}
		list = append(list, Condition{g})
	}
	return list, true
}

// isSafe reports whether asking the condition cannot fail.
func (g *group) isSafe() bool {
	for _, f := range g.fields {
		if !isSafe(f.test) {
			return false
		}
	}
	return true
}

// isSafe reports whether a test cannot fail, as one with a regular expression or another filter in it can.
func isSafe(t test) bool {
	switch t := t.(type) {
	case *compareTest, *Exists, *Type, *Mod, *Size, *Bits, constantTest:
		return true
	case *inTest:
		return len(t.regexes) == 0
	case *notTest:
		return isSafe(t.child)
	case *elementsTest:
		return isSafe(t.child)
	case allTests:
		return areSafe(t)
	case anyTest:
		return areSafe(t)
	}
	return false
}

func areSafe(list []test) bool {
	for _, t := range list {
		if !isSafe(t) {
			return false
		}
	}
	return true
}
