package aggregate

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// windowStage is $setWindowFields.
type windowStage struct {
	o         *Options
	partition *expression.Expression // nil: all documents are one partition
	sort      *sortkey.Pattern       // nil: none
	outputs   []*windowOutput
}

// windowOutput is a field that the stage sets.
type windowOutput struct {
	path     []string
	function *windowFunction
}

// windowFunction is a function over a window of documents.
type windowFunction struct {
	op         string
	a          *accumulation // the accumulators
	argument   *expression.Expression
	second     *expression.Expression // of the covariances
	bounds     bounds
	by         int64 // $shift
	fallback   value // $shift
	alpha      number.Number
	unit       string  // $derivative, $integral
	unitMillis float64 // milliseconds of the unit
	x          *expression.Expression
}

// bounds says which documents around one are its window.
type bounds struct {
	ranged       bool // by value instead of by position
	lower, upper bound
	unit         string
}

// bound is an end of a window: an offset, or no limit.
type bound struct {
	unbounded, current bool
	offset             int64         // of positions
	whole              bool          // offset is all of delta
	delta              number.Number // of values
}

func (p *parser) windowFields(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.FailedToParse, "the $setWindowFields stage specification must be an object, found %s", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := &windowStage{o: p.o}
	var output, sortBy value
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "partitionBy":
			err = s.partitionBy(p, v)
		case "sortBy":
			if sortBy = v; v.Type != bsoncore.TypeEmbeddedDocument {
				err = mongoerror.New(mongoerror.TypeMismatch, "BSON field '$setWindowFields.sortBy' is the wrong type '%s', expected type 'object'", mongoerror.TypeName(v.Type))
			}
		case "output":
			if output = v; v.Type != bsoncore.TypeEmbeddedDocument {
				err = mongoerror.New(mongoerror.TypeMismatch, "BSON field '$setWindowFields.output' is the wrong type '%s', expected type 'object'", mongoerror.TypeName(v.Type))
			}
		default:
			err = mongoerror.New(mongoerror.Code(40415), "BSON field '$setWindowFields.%s' is an unknown field.", e.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	if output.Type == 0 {
		return nil, mongoerror.New(mongoerror.Code(40414), "BSON field '$setWindowFields.output' is missing but a required field")
	}
	if sortBy.Type != 0 && len(sortBy.Data) > bsoncore.EmptyDocumentLength {
		if s.sort, err = sortkey.Parse(sortBy.Document(), p.o.Collation); err != nil {
			return nil, err
		}
	}
	return s, s.parseOutputs(p, output.Document())
}

func (s *windowStage) partitionBy(p *parser, v value) (err error) {
	if s.partition, err = expression.Parse(v, p.o.expression()); err != nil {
		return err
	}
	if c, ok := s.partition.Constant(); ok {
		if c.Type == bsoncore.TypeArray {
			return partitionIsArray()
		}
		s.partition = nil
	}
	return nil
}

func partitionIsArray() error {
	return mongoerror.New(mongoerror.TypeMismatch, "An expression used to partition cannot evaluate to value of type array")
}

func (s *windowStage) parseOutputs(p *parser, output document) error {
	elements, err := output.Elements()
	if err != nil {
		return err
	}
	set := map[string]string{} // by the path of a field and by each path above it: the field
	for _, e := range elements {
		segments, err := path.Split(e.Key())
		if err != nil {
			return err
		}
		if other, ok := conflicting(set, e.Key()); ok {
			return mongoerror.New(mongoerror.Code(6307900), "$setWindowFields 'output' specification contains two conflicting paths. Cannot specify both '%s' and '%s'", e.Key(), other)
		}
		if e.Value().Type != bsoncore.TypeEmbeddedDocument {
			return mongoerror.New(mongoerror.FailedToParse, "The field '%s' must be an object", e.Key())
		}
		f, err := s.parseFunction(p, e.Value().Document())
		if err != nil {
			return err
		}
		s.outputs = append(s.outputs, &windowOutput{segments, f})
	}
	return nil
}

// conflicting adds a path to those of other fields. It is ok when one of them is the same, above it or below it.
func conflicting(set map[string]string, path string) (other string, ok bool) {
	if other, ok = set[path]; ok {
		return other, true
	}
	for above := path; ; {
		i := strings.LastIndexByte(above, '.')
		if i < 0 {
			break
		}
		if above = above[:i]; set[above] == above {
			return above, true
		}
		set[above] = path
	}
	set[path] = path
	return "", false
}

func (s *windowStage) parseFunction(p *parser, spec document) (*windowFunction, error) {
	elements, err := spec.Elements()
	if err != nil {
		return nil, err
	}
	f := &windowFunction{bounds: bounds{lower: bound{unbounded: true}, upper: bound{unbounded: true}}}
	var argument, window value
	first := slices.IndexFunc(elements, func(e bsoncore.Element) bool { return strings.HasPrefix(e.Key(), "$") })
	if first >= 0 && isRank(elements[first].Key()) && len(elements) > 1 {
		return nil, mongoerror.New(mongoerror.Code(5371601), "Rank style window functions take no other arguments")
	}
	for _, e := range elements {
		switch {
		case strings.HasPrefix(e.Key(), "$") && f.op == "":
			f.op, argument = e.Key(), e.Value()
		case strings.HasPrefix(e.Key(), "$"):
			return nil, mongoerror.New(mongoerror.FailedToParse, "Cannot specify two functions in window function spec: %s", spec)
		case e.Key() == "window":
			window = e.Value()
		default:
			return nil, mongoerror.New(mongoerror.FailedToParse, "Window function found an unknown argument: %s", e.Key())
		}
	}
	if f.op == "" {
		return nil, mongoerror.New(mongoerror.FailedToParse, "Expected a $-prefixed window function, %s", spec)
	}
	if s.sort != nil && len(s.sort.Parts()) == 1 {
		if f.x, err = expression.Parse(text("$"+s.sort.Parts()[0].Path), p.o.expression()); err != nil {
			return nil, err
		}
	}
	if err := s.parseArgument(p, f, argument, window); err != nil {
		return nil, err
	}
	return f, nil
}

// parseArgument parses what depends on the kind of function.
func (s *windowStage) parseArgument(p *parser, f *windowFunction, v, window value) (err error) {
	switch f.op {
	case "$rank", "$denseRank", "$documentNumber":
		return s.parseRank(f, v)
	case "$shift":
		return s.parseShift(p, f, v, window)
	case "$expMovingAvg":
		return s.parseMovingAverage(p, f, v, window)
	case "$locf", "$linearFill":
		if window.Type != 0 {
			return mongoerror.New(mongoerror.FailedToParse, "'window' field is not allowed in %s", f.op)
		}
		if f.op == "$linearFill" && f.x == nil {
			return mongoerror.New(mongoerror.Code(605001), "$linearFill must be specified with a top level sortBy expression with exactly one element")
		}
		f.argument, err = expression.Parse(v, p.o.expression())
		return err
	case "$covariancePop", "$covarianceSamp":
		err = s.parseCovariance(p, f, v)
	case "$derivative", "$integral":
		err = s.parseCalculus(p, f, v, window)
	case "$mergeObjects", "$accumulator":
		return unknownWindowFunction(f.op)
	default:
		if f.op == "$count" && (v.Type != bsoncore.TypeEmbeddedDocument || len(v.Data) > bsoncore.EmptyDocumentLength) {
			return mongoerror.New(mongoerror.FailedToParse, "$count only accepts an empty object as input")
		}
		if f.a, err = p.accumulation("", f.op, v, true); mongoerror.CodeOf(err) == 15952 {
			return unknownWindowFunction(f.op)
		}
		if err == nil && f.a.n != nil {
			if _, ok := f.a.n.Constant(); !ok && s.partition == nil {
				err = mongoerror.New(mongoerror.Code(5787902), "'n' must be a constant without a partition")
			}
		}
	}
	if err != nil {
		return err
	}
	if f.a != nil {
		f.argument = f.a.argument
	}
	return s.parseWindow(p, f, window)
}

func unknownWindowFunction(op string) error {
	return mongoerror.New(mongoerror.FailedToParse, "Unrecognized window function, %s", op)
}

func (s *windowStage) parseWindow(p *parser, f *windowFunction, window value) error {
	if window.Type == 0 {
		return nil
	}
	if window.Type != bsoncore.TypeEmbeddedDocument {
		return mongoerror.New(mongoerror.FailedToParse, "'window' field must be an object")
	}
	elements, err := window.Document().Elements()
	if err != nil {
		return err
	}
	var documents, ranged, unit value
	for _, e := range elements {
		switch e.Key() {
		case "documents":
			documents = e.Value()
		case "range":
			ranged = e.Value()
		case "unit":
			unit = e.Value()
		default:
			return mongoerror.New(mongoerror.FailedToParse, "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field")
		}
	}
	switch {
	case documents.Type != 0 && (ranged.Type != 0 || unit.Type != 0):
		return mongoerror.New(mongoerror.FailedToParse, "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field")
	case documents.Type != 0:
		return s.documentBounds(p, f, documents)
	case ranged.Type != 0:
		return s.rangeBounds(p, f, ranged, unit)
	case unit.Type != 0:
		return mongoerror.New(mongoerror.FailedToParse, "'unit' is only allowed with 'range'")
	}
	return nil
}

func pairOf(what string, v value) (a, b value, err error) {
	if v.Type == bsoncore.TypeArray {
		if values, err := v.Array().Values(); err == nil && len(values) == 2 {
			return values[0], values[1], nil
		}
	}
	return a, b, mongoerror.New(mongoerror.FailedToParse, "Window bounds must be a 2-element array: %s: %s", what, v)
}

func (s *windowStage) documentBounds(p *parser, f *windowFunction, v value) error {
	low, high, err := pairOf("documents", v)
	if err != nil {
		return err
	}
	if f.bounds.lower, err = p.bound(low, false); err != nil {
		return err
	}
	if f.bounds.upper, err = p.bound(high, false); err != nil {
		return err
	}
	if err := f.bounds.ordered(); err != nil {
		return err
	}
	if s.sort == nil && !(f.bounds.lower.unbounded && f.bounds.upper.unbounded) {
		return mongoerror.New(mongoerror.Code(5339901), "Document-based bounds require a sortBy")
	}
	return nil
}

// ordered checks that the lower end is not above the upper one.
func (b *bounds) ordered() error {
	if b.lower.unbounded || b.upper.unbounded {
		return nil
	}
	if !b.ranged && b.lower.offset > b.upper.offset || b.ranged && order.Compare(b.lower.delta.Value(), b.upper.delta.Value(), nil) > 0 {
		return mongoerror.New(mongoerror.Code(5339900), "Lower bound must not exceed upper bound")
	}
	return nil
}

func (s *windowStage) rangeBounds(p *parser, f *windowFunction, v, unit value) error {
	low, high, err := pairOf("range", v)
	if err != nil {
		return err
	}
	f.bounds.ranged = true
	if f.bounds.lower, err = p.bound(low, true); err != nil {
		return err
	}
	if f.bounds.upper, err = p.bound(high, true); err != nil {
		return err
	}
	if unit.Type != 0 {
		name, ok := unit.StringValueOK()
		if !ok {
			return mongoerror.New(mongoerror.FailedToParse, "'unit' must be a string")
		}
		if err := checkUnit(name); err != nil {
			return err
		}
		f.bounds.unit = name
		if !f.bounds.lower.whole || !f.bounds.upper.whole {
			return mongoerror.New(mongoerror.FailedToParse, "With 'unit', range-based bounds must be an integer")
		}
	}
	if err := f.bounds.ordered(); err != nil {
		return err
	}
	if f.x == nil || s.sort.Parts()[0].Descending {
		return mongoerror.New(mongoerror.Code(5339902), "Range-based bounds require sortBy a single field, ascending")
	}
	return nil
}

// bound parses "unbounded", "current" or a number.
func (p *parser) bound(v value, ranged bool) (bound, error) {
	if name, ok := v.StringValueOK(); ok {
		switch name {
		case "unbounded":
			return bound{unbounded: true, whole: true, delta: number.Int32(0)}, nil
		case "current":
			return bound{current: true, whole: true, delta: number.Int32(0)}, nil
		}
		return bound{}, mongoerror.New(mongoerror.FailedToParse, "Window bounds must be 'unbounded', 'current', or a number: %s", v)
	}
	c, err := p.constant(v, mongoerror.FailedToParse)
	if err != nil {
		return bound{}, err
	}
	n, ok := number.Of(c)
	if !ok {
		return bound{}, mongoerror.New(mongoerror.FailedToParse, "Numeric window bounds must be a constant number: %s", v)
	}
	i, whole := int32Of(c)
	if !ranged && !whole {
		return bound{}, mongoerror.New(mongoerror.FailedToParse, "Numeric document-based bounds must be an integer")
	}
	return bound{offset: i, whole: whole, delta: n}, nil
}
