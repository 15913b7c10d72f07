// Package expression is MongoDB's aggregation expressions: parsed once, evaluated for each document.
//
// It promises the results, the result types and the error codes of the server's classic engine; constants are folded, so that
// what is wrong with them is an error of Parse. An Expression is immutable and safe for concurrent use; all that changes while
// it is evaluated lies in a state that comes from a pool. It never changes the document, never reads a clock ($$NOW is an
// option) and never runs code of the user: $function and $accumulator are refused. Names of time zones are looked up with
// time.LoadLocation: where the system has no zone database the program has to import time/tzdata.
//
// Errors are *mongoerror.Error. What one evaluation may build is bounded (code 146), and so are the nesting of an expression,
// of a result, and its size (code 10334).
package expression

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
)

// Variable is a variable from outside: one of `let`.
type Variable struct {
	Name  string
	Value bsoncore.Value
}

// Options of Parse. nil means the zero value.
type Options struct {
	Collation *collation.Collation
	// Let are the variables that the expression may use, $$USER_ROLES among them. One whose Value is missing (Type 0) is only declared: EvalWith gives it
	// its value, and it is missing otherwise. The others are constants.
	Let []Variable
	Now time.Time // $$NOW; zero: there is none
	// Meta gives {$meta: kind} for the document that is being evaluated where EvalWith is not given the variable
	// MetaVariable(kind); nil: it is missing then.
	Meta func(kind string) bsoncore.Value
	// Unsorted refuses {$meta: "sortKey"}: nobody knows what the documents were sorted by.
	Unsorted bool

	// Unscored refuses {$meta: "textScore"}: no search has given the documents scores.
	Unscored bool
	// Long lets a result be as long as what an evaluation may build, rather than as a document: for pipelines, where others may make it shorter.
	Long bool
	// Later leaves errors of constants to the evaluation: in an update that changes nothing they are none.
	Later bool
	// Redact defines $$DESCEND, $$PRUNE and $$KEEP, for Expression.Redact.
	Redact bool
	// Validator refuses $rand: what a collection's validator says of a document is always the same.
	Validator bool
	// Call is who waits for the evaluations, and ends them with its context, and knows $$CLUSTER_TIME; nil: nobody.
	Call *Call
}

// Expression is a parsed expression: immutable, safe for concurrent use.
type Expression struct {
	root          node
	slots         int      // how many variables an evaluation needs
	external      []string // the variables that EvalWith gives values, and their slots
	externalSlots []int
	current       int // the slot of what $redact looks at, -1 when there is none
	meta          func(kind string) bsoncore.Value
	call          *Call
	metas         []string
	most          int // bytes of a result; 0: as many as a document may have
}

// Parse parses an operand: "$field", "$$variable", {$operator: ...}, {field: ...}, [...] or a constant; constants are folded.
// The expression keeps what it needs of v's bytes: they must not change.
func Parse(v bsoncore.Value, o *Options) (*Expression, error) {
	if o == nil {
		o = &Options{}
	}
	p := newParser(o)
	root, err := p.operand(v)
	if err != nil {
		return nil, shorten(err)
	}
	if p.folding != nil && !o.Later {
		return nil, p.folding
	}
	most := maxResult
	if o.Long {
		most = maxBuilt
	}
	return &Expression{
		most: most,
		root: root, slots: p.slots, external: p.external, externalSlots: p.externalSlots, current: p.redacted, meta: o.Meta, call: o.Call,
		metas: p.metas,
	}, nil
}

// Eval evaluates with root as $$ROOT and $$CURRENT. A missing value is a Value with Type 0. The result may refer to bytes of
// root and of the expression.
func (e *Expression) Eval(root bsoncore.Document) (bsoncore.Value, error) {
	return e.EvalWith(root, nil)
}

// EvalWith is Eval with values for the variables that Options.Let declared. Others are ignored.
func (e *Expression) EvalWith(root bsoncore.Document, variables []Variable) (bsoncore.Value, error) {
	if c, ok := e.root.(*constant); ok {
		return c.value, nil
	}
	st := newState(root, e)
	defer st.release()
	e.bind(st, variables)
	return st.result(e.root)
}

// bind gives the variables from outside their values. Of several with one name the last counts.
func (e *Expression) bind(st *state, variables []Variable) {
	for i, name := range e.external {
		for _, v := range variables {
			if v.Name == name {
				st.variables[e.externalSlots[i]] = v.Value
			}
		}
	}
}

// Constant returns the value when it does not depend on the document.
func (e *Expression) Constant() (v bsoncore.Value, ok bool) {
	if c, is := e.root.(*constant); is {
		return c.value, true
	}
	return bsoncore.Value{}, false
}

// FieldPath returns the path when the expression is just "$a.b".
func (e *Expression) FieldPath() (path string, ok bool) {
	if f, is := e.root.(*fieldPath); is && len(f.segments) > 0 {
		return f.String(), true
	}
	return "", false
}

// Fields returns the dotted paths that it reads; whole means that it may need the whole document.
func (e *Expression) Fields() (paths []string, whole bool) {
	seen := map[string]bool{}
	walk(e.root, func(n node) {
		f, ok := n.(*fieldPath)
		switch {
		case !ok:
		case len(f.segments) == 0:
			whole = true
		case !seen[f.String()]:
			seen[f.String()] = true
			paths = append(paths, f.String())
		}
	})
	if e.current >= 0 {
		whole = true
	}
	return paths, whole
}

// Metas returns the kinds of metadata that {$meta: ...} asks for in the expression.
func (e *Expression) Metas() []string { return e.metas }

// Truthy is how conditions see a value: false, null, missing, undefined and zero are false.
func Truthy(v bsoncore.Value) bool {
	switch v.Type {
	case bsoncore.TypeBoolean:
		return len(v.Data) > 0 && v.Data[0] != 0
	case 0, bsoncore.TypeNull, bsoncore.TypeUndefined:
		return false
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		return numberIsTrue(v)
	}
	return true
}
