package aggregate

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// accumulation is an accumulator with its arguments: a field of $group, or a function over a window.
type accumulation struct {
	field     string
	op        string
	argument  *expression.Expression
	input     operand          // argument, prepared by an extractor
	keys      *sortkey.Pattern // $top and the like, over the values of keyPaths
	keyPaths  []*expression.Expression
	n         *expression.Expression
	p         []float64
	collation *collation.Collation
}

// accumulation parses {$op: argument}, of a $group or over a window.
func (p *parser) accumulation(field, op string, v value, window bool) (*accumulation, error) {
	if v.Type == bsoncore.TypeArray && !window { // of an operator that nobody knows, too
		return nil, mongoerror.New(mongoerror.Code(40237), "The %s accumulator is a unary operator", op)
	}
	a := &accumulation{field: field, op: op, collation: p.o.Collation}
	var err error
	switch op {
	case "$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet", "$stdDevPop", "$stdDevSamp", "$mergeObjects":
		a.argument, err = expression.Parse(v, p.o.expression())
	case "$count":
		if v.Type != bsoncore.TypeEmbeddedDocument || len(v.Data) > bsoncore.EmptyDocumentLength {
			return nil, mongoerror.New(mongoerror.TypeMismatch, "$count takes no arguments, i.e. $count:{}")
		}
		a.argument, err = expression.Parse(int32Value(1), p.o.expression())
	case "$top", "$bottom", "$topN", "$bottomN":
		err = p.topArguments(a, v)
	case "$firstN", "$lastN", "$minN", "$maxN":
		err = p.countedArguments(a, v)
	case "$median", "$percentile":
		err = p.percentileArguments(a, v)
	case "$accumulator":
		return nil, mongoerror.New(mongoerror.CommandNotSupported, "$accumulator runs code of the user, which is not supported")
	default:
		return nil, mongoerror.New(mongoerror.Code(15952), "unknown group operator '%s'", op)
	}
	return a, err
}

// arguments reads a document of arguments with known names.
func arguments(op string, v value, code mongoerror.Code, names ...string) (map[string]value, error) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(code, "specification must be an object; found %s: %s", op, v)
	}
	return knownFields(v, names, func(field string) error {
		return mongoerror.New(unknownArgument(op), "Unknown argument to %s '%s'", op, field)
	})
}

// knownFields reads the fields of a document; one whose name is not among names ends it with the error of unknown.
func knownFields(doc value, names []string, unknown func(field string) error) (map[string]value, error) {
	elements, err := doc.Document().Elements()
	if err != nil {
		return nil, err
	}
	list := map[string]value{}
	for _, e := range elements {
		if !slices.Contains(names, e.Key()) {
			return nil, unknown(e.Key())
		}
		list[e.Key()] = e.Value()
	}
	return list, nil
}

func unknownArgument(op string) mongoerror.Code {
	switch op {
	case "$top", "$bottom", "$topN", "$bottomN":
		return 5788002
	case "$median", "$percentile":
		return 40415
	}
	return 5787901
}

func (p *parser) topArguments(a *accumulation, v value) error {
	names := []string{"sortBy", "output", "n"}
	single := a.op == "$top" || a.op == "$bottom"
	if single {
		names = names[:2]
	}
	list, err := arguments(a.op, v, 5788001, names...)
	if err != nil {
		return err
	}
	switch {
	case !single && list["n"].Type == 0:
		return mongoerror.New(mongoerror.Code(5788003), "Missing value for 'n'")
	case list["output"].Type == 0:
		return mongoerror.New(mongoerror.Code(5788004), "Missing value for 'output'")
	case list["sortBy"].Type == 0:
		return mongoerror.New(mongoerror.Code(5788005), "Missing value for 'sortBy'")
	case list["sortBy"].Type != bsoncore.TypeEmbeddedDocument:
		return mongoerror.New(mongoerror.Code(10065), "invalid parameter: expected an object (sortBy)")
	}
	if err := p.sortBy(a, list["sortBy"].Document()); err != nil {
		return err
	}
	if !single {
		if err := p.number(a, list["n"]); err != nil {
			return err
		}
	}
	a.argument, err = expression.Parse(list["output"], p.o.expression())
	return err
}

// sortBy parses what $top and the like sort by. Unlike $sort they evaluate each path as an expression, and sort by what it gives.
func (p *parser) sortBy(a *accumulation, spec document) error {
	if len(spec) <= bsoncore.EmptyDocumentLength {
		return nil // everything is equal
	}
	var err error
	if a.keys, err = sortkey.Parse(spec, a.collation); err != nil {
		return err
	}
	for _, part := range a.keys.Parts() {
		if part.Meta != "" {
			return mongoerror.New(mongoerror.CommandNotSupported, "%s does not sort by $meta", a.op)
		}
		e, err := expression.Parse(text("$"+part.Path), p.o.expression())
		if err != nil {
			return err
		}
		a.keyPaths = append(a.keyPaths, e)
	}
	return nil
}

// key appends the sort key of a document: arrays count as a whole, but empty ones as undefined, and there may be one only.
func (a *accumulation) key(dst []byte, doc document) ([]byte, error) {
	values := make([]value, len(a.keyPaths))
	arrays := 0
	for i, e := range a.keyPaths {
		v, err := e.Eval(doc)
		if err != nil {
			return dst, err
		}
		if v.Type == bsoncore.TypeArray {
			if arrays++; len(v.Data) <= bsoncore.EmptyDocumentLength {
				v = value{Type: bsoncore.TypeUndefined}
			}
		}
		values[i] = v
	}
	if arrays > 1 {
		return dst, mongoerror.New(mongoerror.BadValue, "cannot sort with keys that are parallel arrays")
	}
	return a.keys.AppendValues(dst, values), nil
}

func (p *parser) countedArguments(a *accumulation, v value) error {
	code := mongoerror.Code(5787900)
	if a.op == "$firstN" || a.op == "$lastN" {
		code = 5787801
	}
	list, err := arguments(a.op, v, code, "n", "input")
	if err != nil {
		return err
	}
	switch {
	case list["n"].Type == 0:
		return mongoerror.New(mongoerror.Code(5787906), "Missing value for 'n'")
	case list["input"].Type == 0:
		return mongoerror.New(mongoerror.Code(5787907), "Missing value for 'input'")
	}
	if err := p.number(a, list["n"]); err != nil {
		return err
	}
	a.argument, err = expression.Parse(list["input"], p.o.expression())
	return err
}

// number parses n; a constant is checked at once.
func (p *parser) number(a *accumulation, v value) error {
	var err error
	if a.n, err = expression.Parse(v, p.o.expression()); err != nil {
		return err
	}
	if _, ok := a.n.Constant(); ok {
		_, err = a.count(value{})
	}
	return err
}

// count returns n for the group with an id.
func (a *accumulation) count(id value) (int, error) {
	if a.n == nil {
		return 1, nil
	}
	v, ok := a.n.Constant()
	if !ok {
		var err error
		if v, err = a.n.Eval(fields("_id", id)); err != nil {
			return 0, err
		}
	}
	if !isNumber(v) {
		return 0, mongoerror.New(mongoerror.Code(5787902), "Value for 'n' must be of integral type, but found %s", v)
	}
	n, exact := integer(v)
	switch {
	case !exact:
		return 0, mongoerror.New(mongoerror.Code(5787903), "Value for 'n' must be of integral type, but found %s", v)
	case n <= 0:
		return 0, mongoerror.New(mongoerror.Code(5787908), "'n' must be greater than 0, found %d", n)
	}
	return int(min(n, math.MaxInt32)), nil
}

func (p *parser) percentileArguments(a *accumulation, v value) error {
	names := []string{"input", "method", "p"}
	if a.op == "$median" {
		names = names[:2]
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		code := mongoerror.Code(7429703)
		if a.op == "$median" {
			code = 7436100
		}
		return mongoerror.New(code, "specification must be an object; found %s :%s", a.op, v)
	}
	list, err := arguments(a.op, v, 7429703, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if list[name].Type == 0 {
			return mongoerror.New(mongoerror.Code(40414), "BSON field '%s.%s' is missing but a required field", a.op, name)
		}
	}
	if method := list["method"]; !isString(method) || method.StringValue() != "approximate" {
		return mongoerror.New(mongoerror.BadValue, "Currently only 'approximate' can be used as percentile 'method'.")
	}
	if a.p = []float64{0.5}; a.op == "$percentile" {
		if a.p, err = p.fractions(list["p"]); err != nil {
			return err
		}
	}
	a.argument, err = expression.Parse(list["input"], p.o.expression())
	return err
}

// fractions reads the constant array p of $percentile.
func (p *parser) fractions(v value) ([]float64, error) {
	e, err := expression.Parse(v, p.o.expression())
	if err != nil {
		return nil, err
	}
	v, ok := e.Constant()
	if !ok || v.Type != bsoncore.TypeArray || len(v.Data) <= bsoncore.EmptyDocumentLength {
		return nil, mongoerror.New(mongoerror.Code(7750300), "The $percentile 'p' field must be an array of constant values, but found value: %s.", v)
	}
	var list []float64
	it := path.ElementsOf(v.Data)
	for _, v, ok := it.Next(); ok; _, v, ok = it.Next() {
		n, ok := number.Of(v)
		if !ok {
			return nil, mongoerror.New(mongoerror.Code(7750301), "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s", v)
		}
		f := n.Float64()
		if f < 0 || f > 1 || f != f {
			return nil, mongoerror.New(mongoerror.Code(7750303), "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s", v)
		}
		list = append(list, f)
	}
	return list, nil
}

// accumulator returns a fresh accumulator for the group with an id.
func (a *accumulation) accumulator(id value) (accumulator, error) {
	n, err := a.count(id)
	if err != nil {
		return nil, err
	}
	switch a.op {
	case "$sum", "$count":
		return new(sumAccumulator), nil
	case "$avg":
		return new(averageAccumulator), nil
	case "$min", "$max":
		sign := 1
		if a.op == "$min" {
			sign = -1
		}
		return &extremeAccumulator{sign: sign, collation: a.collation}, nil
	case "$first":
		return new(firstAccumulator), nil
	case "$last":
		return new(lastAccumulator), nil
	case "$push":
		return new(pushAccumulator), nil
	case "$addToSet":
		return &setAccumulator{collation: a.collation}, nil
	case "$mergeObjects":
		return new(mergeAccumulator), nil
	case "$firstN", "$lastN":
		return &endsAccumulator{op: a.op, n: n, last: a.op == "$lastN"}, nil
	case "$median", "$percentile":
		return &percentileAccumulator{p: a.p, single: a.op == "$median"}, nil
	case "$stdDevPop", "$stdDevSamp":
		return &deviationAccumulator{sample: a.op == "$stdDevSamp"}, nil
	}
	return a.ranked(n), nil
}

func (a *accumulation) ranked(n int) accumulator {
	r := &rankedAccumulator{op: a.op, n: n, collation: a.collation}
	switch a.op {
	case "$minN", "$maxN":
		r.own = true
		r.last, r.backwards = a.op == "$maxN", a.op == "$maxN"
	case "$top", "$bottom":
		r.single, r.last = true, a.op == "$bottom"
	case "$bottomN":
		r.last = true
	}
	return r
}

// sequential reports whether an accumulator has to see all its inputs one after the other: which of several equal values $bottomN and $maxN
// keep depends on what was there when each came. The others make the same of what two of them have made of two halves.
func (a *accumulation) sequential() bool { return a.op == "$bottomN" || a.op == "$maxN" }

// feed evaluates the arguments for a document and adds them. key is a buffer.
func (a *accumulation) feed(to accumulator, x *extractor, doc document, key []byte) (grew int, _ []byte, err error) {
	if s, ok := to.(satiable); ok && s.satisfied() {
		return 0, key, nil // what is not needed is not evaluated
	}
	v, err := x.eval(&a.input, doc)
	if err != nil {
		return 0, key, err
	}
	if a.keys != nil {
		if key, err = a.key(key[:0], doc); err != nil {
			return 0, key, err
		}
		if v.Type == 0 {
			v = null()
		}
	}
	grew, err = to.add(key, v)
	return grew, key, err
}

// accumulatorCost is about how many bytes a fresh accumulator takes.
const accumulatorCost = 120
