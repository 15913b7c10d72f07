package update

import "strconv"

// Targets is what an update writes to, at some place in a document: a change is told as it was asked for, {"o": {...}} where $set
// named o, and {"o.x": ...} where it named o.x. The zero Targets is of a place of which nothing is known, such as any in a replacement
// or behind a pipeline.
type Targets struct {
	n        *node
	position int // what the positional $ stands for
}

// Targets returns what the update writes to; position is what $ stands for, as in Apply.
func (u *Update) Targets(position int) Targets { return Targets{u.root, position} }

// Known reports whether anything is known.
func (t Targets) Known() bool { return t.n != nil }

// Whole reports whether the value at this place is written as one.
func (t Targets) Whole() bool { return t.n != nil && t.n.op != nil }

// Rewrites reports whether the value at this place is written as one by an operator that counts as a change even where the value stays what
// it was.
func (t Targets) Rewrites() bool {
	if !t.Whole() {
		return false
	}
	switch t.n.op.kind {
	case opPush, opInc, opMul, opUnset, opCurrentDate:
		return true
	}
	return false
}

// Appends reports whether the value at this place is an array that gets more elements at its end, and perhaps loses some.
func (t Targets) Appends() bool {
	if !t.Whole() || t.n.op.kind != opPush {
		return false
	}
	push := t.n.op.push
	return push == nil || !push.positioned && push.sort == nil
}

// Every reports whether elements are written to that were not named by their positions, so that several are told as the array.
func (t Targets) Every() bool { return t.n != nil && t.n.array }

// Field returns what is written to in a field.
func (t Targets) Field(name string) Targets {
	if t.n == nil || t.n.op != nil || t.n.array {
		return Targets{}
	}
	return Targets{t.n.child(name), t.position}
}

// Element returns what is written to in an element.
func (t Targets) Element(i int) Targets {
	switch {
	case t.n == nil || t.n.op != nil:
		return Targets{}
	case !t.n.array:
		return t.field(i)
	case len(t.n.children) == 1:
		return Targets{t.n.children[0], t.position}
	}
	return Targets{} // which of the identifiers stands for it is not known
}

// field is Field for a position, which a path may write with zeros in front.
func (t Targets) field(i int) Targets {
	if t.n.positional != nil && i == t.position {
		return Targets{t.n.positional, t.position}
	}
	var room [20]byte
	if k := t.n.names.Find(strconv.AppendInt(room[:0], int64(i), 10)); k >= 0 {
		return Targets{t.n.children[k], t.position}
	}
	return Targets{t.n.padded[i], t.position}
}
