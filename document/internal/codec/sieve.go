package codec

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Condition is a question about one top-level field. Its answer depends on the value alone, which is of type 0 when the field is
// missing, and which Holds does not keep.
type Condition struct {
	Field string
	Holds func(v bsoncore.Value) bool
}

// Sieve tells of stored records whether conditions hold, where a few bytes say so: the value of a small number, of a string in a
// dictionary or of a bool follows from one byte of the record, and there are 256 of those, so that a condition is asked once for each
// and not once for each record. It is used by one goroutine at a time.
type Sieve struct {
	c          *Codec
	conditions []Condition
	templates  [shortNumbers]*screen // by the tag; nil: not met yet
	scratch    []byte
}

// Verdict is what a Sieve knows of a record.
type Verdict uint8

// The verdicts. Unknown asks for a look at the record.
const (
	Unknown Verdict = iota
	Fails           // a condition does not hold
	Holds           // all do
)

// screen is what a sieve looks at in the records of a template.
type screen struct {
	front  int // bytes that a record has at least
	fails  bool
	open   bool // the answer to some condition does not follow from a single byte
	checks []check
}

// check is the answers to a condition on one field.
type check struct {
	place     int // in the record
	op        *op
	condition *Condition
	answers   [256]answer // by the byte there
}

// answer is what a byte tells, as a bit, so that those to several conditions are put together without a branch for each.
type answer uint8

const (
	notAsked answer = 0
	asked    answer = 1 << iota
	fails
	undecided
)

// NewSieve returns a sieve for records of this codec.
func (c *Codec) NewSieve(conditions []Condition) *Sieve { return &Sieve{c: c, conditions: conditions} }

// Look returns what a few bytes of a record tell.
func (s *Sieve) Look(stored []byte) Verdict {
	if len(stored) == 0 || stored[0]-tagTemplate >= shortNumbers {
		return Unknown
	}
	r := s.templates[stored[0]-tagTemplate]
	if r == nil {
		if r = s.meet(int(stored[0] - tagTemplate)); r == nil {
			return Unknown
		}
	}
	if len(stored) <= r.front {
		return Unknown // it is damaged
	}
	if r.fails {
		return Fails
	}
	all, any := asked, answer(0)
	for i := range r.checks {
		k := &r.checks[i]
		one := k.answers[stored[k.place]]
		all, any = all&one, any|one
	}
	switch {
	case any&fails != 0:
		return Fails
	case all == notAsked:
		return s.askAll(r, stored)
	case r.open || any&undecided != 0:
		return Unknown
	}
	return Holds
}

// askAll is what Look does where some bytes have not been met yet.
func (s *Sieve) askAll(r *screen, stored []byte) Verdict {
	verdict := Holds
	if r.open {
		verdict = Unknown
	}
	for i := range r.checks {
		k := &r.checks[i]
		switch one := s.ask(k, stored[k.place]); {
		case one&fails != 0:
			return Fails
		case one&undecided != 0:
			verdict = Unknown
		}
	}
	return verdict
}

// meet prepares for the records of a template; nil: it is not known.
func (s *Sieve) meet(number int) *screen {
	t := s.c.table.Load().at(number)
	if t == nil {
		return nil
	}
	r := &screen{front: t.front}
	for i := range s.conditions {
		condition := &s.conditions[i]
		f := t.fieldOf(condition.Field)
		if f < 0 {
			r.fails = r.fails || !condition.Holds(bsoncore.Value{})
			continue
		}
		switch o := &t.ops[t.fields[f].first]; o.kind {
		case kindNothing:
			r.fails = r.fails || !condition.Holds(bsoncore.Value{Type: bsoncore.Type(o.typ)})
		case kindBool, kindInt32, kindInt64, kindString:
			r.checks = append(r.checks, check{place: 1 + int(o.place), op: o, condition: condition})
		default:
			r.open = true
		}
	}
	s.templates[number] = r
	return r
}

// ask finds the answer for one byte.
func (s *Sieve) ask(k *check, b byte) answer {
	if k.answers[b] != notAsked {
		return k.answers[b]
	}
	one := asked
	v, scratch, ok := k.op.alone(b, s.scratch[:0])
	s.scratch = scratch
	switch {
	case !ok:
		one |= undecided
	case !k.condition.Holds(v):
		one |= fails
	}
	k.answers[b] = one
	return one
}
