package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
)

// Node is a node of a filter's tree: *And, *Or, *Nor, *Not, *Comparison, *In, *Exists, *Type, *Regex, *Mod, *Size,
// *ElemMatch, *ElemMatchValue, *Bits, *Expr, *JSONSchema, *Geo, *Near, *Sample, *Always. $all is And of its conditions, $ne and
// $nin are Not. Nodes are immutable.
type Node interface{ node() }

// And is matched when all of Children are. An empty one always is.
type And struct{ Children []Node }

// Or is matched when one of Children is.
type Or struct{ Children []Node }

// Nor is matched when none of Children is.
type Nor struct{ Children []Node }

// Not is matched when Child is not: {field: {$not: ...}}; $ne is Not of a Comparison, $nin Not of an In.
type Not struct{ Child Node }

// Op is a comparison.
type Op uint8

// The comparisons.
const (
	Eq Op = iota
	Lt
	Lte
	Gt
	Gte
)

// Comparison is {Path: {Op: Value}}, matching array elements too, and only values of the same class.
type Comparison struct {
	Path  string
	Op    Op
	Value bsoncore.Value

	implied bool // by an Expr beside it
}

// In is {Path: {$in: [...]}}: values sorted and without duplicates; regular expressions are apart.
type In struct {
	Path    string
	Values  []bsoncore.Value
	Regexes []*Regex

	implied bool // by an Expr beside it
}

// Exists is {Path: {$exists: true}}; $exists: false is Not of it.
type Exists struct{ Path string }

// Type is {Path: {$type: [...]}}. Types has the four kinds of numbers too when Number is set, that is when "number" was asked for.
type Type struct {
	Path   string
	Types  []bsoncore.Type
	Number bool
}

// Regex is {Path: /Pattern/Options}. Prefix is the literal text with which every match starts, for index bounds; Exact tells that
// the whole pattern is ^Prefix.
type Regex struct {
	Path, Pattern, Options string
	Prefix                 string
	Exact                  bool

	engine engine
}

// Mod is {Path: {$mod: [Divisor, Remainder]}}.
type Mod struct {
	Path               string
	Divisor, Remainder int64
}

// Size is {Path: {$size: N}}.
type Size struct {
	Path string
	N    int64
}

// ElemMatch is {Path: {$elemMatch: {a: ..., b: ...}}}: Child matches an element, paths relative to it.
type ElemMatch struct {
	Path  string
	Child Node
}

// ElemMatchValue is {Path: {$elemMatch: {$gt: 1, $lt: 5}}}: all of Children, which have an empty Path, match one element.
type ElemMatchValue struct {
	Path     string
	Children []Node
}

// BitsOp is what is asked of bits.
type BitsOp uint8

// The questions.
const (
	BitsAllSet BitsOp = iota
	BitsAllClear
	BitsAnySet
	BitsAnyClear
)

// Bits is {Path: {$bitsAllSet: [...]}} and the like, of a number or binary data.
type Bits struct {
	Path      string
	Op        BitsOp
	Positions []uint32 // ascending

	mask uint64 // the positions below 64, those above as that of the sign
}

// Expr is {$expr: Spec}. Equalities that it implies stand beside it in the tree, for indexes.
type Expr struct {
	Spec       bsoncore.Value
	Expression *expression.Expression

	implied []Node
}

// JSONSchema is {$jsonSchema: Spec}.
type JSONSchema struct {
	Spec bsoncore.Document

	schema *schema
}

// Sample is {$sampleRate: Rate}: it matches at random.
type Sample struct{ Rate float64 }

// Always matches every document (Value true) or none.
type Always struct{ Value bool }

func (*And) node()            {}
func (*Or) node()             {}
func (*Nor) node()            {}
func (*Not) node()            {}
func (*Comparison) node()     {}
func (*In) node()             {}
func (*Exists) node()         {}
func (*Type) node()           {}
func (*Regex) node()          {}
func (*Mod) node()            {}
func (*Size) node()           {}
func (*ElemMatch) node()      {}
func (*ElemMatchValue) node() {}
func (*Bits) node()           {}
func (*Expr) node()           {}
func (*JSONSchema) node()     {}
func (*Sample) node()         {}
func (*Always) node()         {}

// pathOf returns the path of a node that is about one field; ok is false for others.
func pathOf(n Node) (p string, ok bool) {
	switch n := n.(type) {
	case *Comparison:
		return n.Path, true
	case *In:
		return n.Path, true
	case *Exists:
		return n.Path, true
	case *Type:
		return n.Path, true
	case *Regex:
		return n.Path, true
	case *Mod:
		return n.Path, true
	case *Size:
		return n.Path, true
	case *ElemMatch:
		return n.Path, true
	case *ElemMatchValue:
		return n.Path, true
	case *Bits:
		return n.Path, true
	case *Geo:
		return n.Path, true
	case *Near:
		return n.Path, true
	}
	return "", false
}

// childrenOf returns the nodes below n.
func childrenOf(n Node) []Node {
	switch n := n.(type) {
	case *And:
		return n.Children
	case *Or:
		return n.Children
	case *Nor:
		return n.Children
	case *Not:
		return []Node{n.Child}
	case *ElemMatch:
		return []Node{n.Child}
	case *ElemMatchValue:
		return n.Children
	}
	return nil
}
