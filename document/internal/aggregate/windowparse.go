package aggregate

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// isRank reports whether a window function is one of those that number documents.
func isRank(op string) bool { return op == "$rank" || op == "$denseRank" || op == "$documentNumber" }

func (s *windowStage) parseRank(f *windowFunction, v value) error {
	switch {
	case v.Type != bsoncore.TypeEmbeddedDocument || len(v.Data) > bsoncore.EmptyDocumentLength:
		return mongoerror.New(mongoerror.Code(5371603), "(None) must be specified with '%s' as the value", f.op)
	case s.sort == nil || len(s.sort.Parts()) != 1:
		return mongoerror.New(mongoerror.Code(5371602), "%s must be specified with a top level sortBy expression with exactly one element", f.op)
	}
	return nil
}

// functionArguments reads the arguments of a window function that takes a document.
func functionArguments(op string, v value, names ...string) (map[string]value, error) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.FailedToParse, "Argument to %s must be an object", op)
	}
	return knownFields(v, names, func(field string) error {
		return mongoerror.New(mongoerror.FailedToParse, "%s got unexpected argument: %s", op, field)
	})
}

func (s *windowStage) parseShift(p *parser, f *windowFunction, v, window value) error {
	list, err := functionArguments(f.op, v, "output", "by", "default")
	if err != nil {
		return err
	}
	switch {
	case s.sort == nil:
		return mongoerror.New(mongoerror.FailedToParse, "'$shift' requires a sortBy")
	case window.Type != 0:
		return mongoerror.New(mongoerror.FailedToParse, "'$shift' does not accept a 'window' field")
	case list["output"].Type == 0:
		return mongoerror.New(mongoerror.FailedToParse, "'$shift' requires an 'output' expression")
	case list["by"].Type == 0:
		return mongoerror.New(mongoerror.FailedToParse, "'$shift' requires 'by' as an integer value")
	}
	by, whole := int32Of(list["by"])
	if !whole {
		return mongoerror.New(mongoerror.FailedToParse, "'$shift:by' field must be an integer, but found by: %s", list["by"])
	}
	f.by, f.fallback = by, null()
	if d := list["default"]; d.Type != 0 {
		if f.fallback, err = p.constant(d, mongoerror.FailedToParse); err != nil {
			return err
		}
	}
	f.argument, err = expression.Parse(list["output"], p.o.expression())
	return err
}

func (s *windowStage) parseMovingAverage(p *parser, f *windowFunction, v, window value) error {
	list, err := functionArguments(f.op, v, "input", "N", "alpha")
	if err != nil {
		return err
	}
	n, alpha := list["N"], list["alpha"]
	switch {
	case s.sort == nil:
		return mongoerror.New(mongoerror.FailedToParse, "$expMovingAvg requires an explicit 'sortBy'")
	case window.Type != 0:
		return mongoerror.New(mongoerror.FailedToParse, "$expMovingAvg sub object must have exactly two fields")
	case list["input"].Type == 0 || (n.Type == 0) == (alpha.Type == 0):
		return mongoerror.New(mongoerror.FailedToParse, "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field")
	}
	if n.Type != 0 {
		i, exact := integer(n)
		if !exact || !isNumber(n) {
			return mongoerror.New(mongoerror.FailedToParse, "'N' field must be an integer, but found  %s", n)
		}
		if i <= 0 {
			return mongoerror.New(mongoerror.FailedToParse, "'N' must be greater than zero. Got %d", i)
		}
		f.alpha = number.Divide(number.Int32(2).Widen(bsoncore.TypeDecimal128), number.Add(number.Int(i), number.Int32(1)))
	} else {
		a, ok := number.Of(alpha)
		if !ok {
			return mongoerror.New(mongoerror.FailedToParse, "'alpha' must be a number")
		}
		f.alpha = a.Widen(bsoncore.TypeDecimal128)
		if d := f.alpha.Decimal(); d.Sign() <= 0 || d.Compare(number.DecimalFromInt(1)) >= 0 { // NaN has the sign of zero
			return mongoerror.New(mongoerror.FailedToParse, "'alpha' must be between 0 and 1 (exclusive), found alpha: %s", alpha)
		}
	}
	f.argument, err = expression.Parse(list["input"], p.o.expression())
	return err
}

func (s *windowStage) parseCovariance(p *parser, f *windowFunction, v value) error {
	var operands []value
	if v.Type == bsoncore.TypeArray {
		operands, _ = v.Array().Values()
	}
	if len(operands) != 2 { // what is no pair of operands gives no covariance
		operands = []value{null(), null()}
	}
	var err error
	if f.argument, err = expression.Parse(operands[0], p.o.expression()); err != nil {
		return err
	}
	f.second, err = expression.Parse(operands[1], p.o.expression())
	return err
}

func (s *windowStage) parseCalculus(p *parser, f *windowFunction, v, window value) error {
	list, err := functionArguments(f.op, v, "input", "unit")
	if err != nil {
		return err
	}
	switch {
	case list["input"].Type == 0:
		return mongoerror.New(mongoerror.FailedToParse, "%s requires an 'input' expression", f.op)
	case f.x == nil:
		return mongoerror.New(mongoerror.FailedToParse, "%s requires a sortBy with exactly one element", f.op)
	case f.op == "$derivative" && window.Type == 0:
		return mongoerror.New(mongoerror.FailedToParse, "$derivative requires explicit window bounds")
	}
	if unit := list["unit"]; unit.Type != 0 {
		name, ok := unit.StringValueOK()
		if !ok {
			return mongoerror.New(mongoerror.FailedToParse, "unit must be a string")
		}
		if err := checkUnit(name); err != nil {
			return err
		}
		ms, fixed := unitMillis(name)
		if !fixed {
			return mongoerror.New(mongoerror.Code(5490710), "unit must be 'week' or smaller")
		}
		f.unit, f.unitMillis = name, float64(ms)
	}
	f.argument, err = expression.Parse(list["input"], p.o.expression())
	return err
}
