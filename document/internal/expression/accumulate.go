package expression

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
)

// each calls visit for the operands of an accumulator that is used as an expression: a single array stands for its elements.
func each(values []bsoncore.Value, visit func(v bsoncore.Value)) {
	if len(values) != 1 || !isArray(values[0]) {
		for _, v := range values {
			visit(v)
		}
		return
	}
	it := elementsOf(values[0].Data)
	for {
		_, v, ok := it.next()
		if !ok {
			return
		}
		visit(v)
	}
}

// evalStatistic is $sum, $avg, $stdDevPop and $stdDevSamp.
func evalStatistic(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	switch name {
	case "$sum":
		var s number.Sum
		each(values, func(v bsoncore.Value) { s.AddValue(v) })
		return st.number(s.Result())
	case "$avg":
		var a number.Average
		each(values, a.AddValue)
		if n, ok := a.Result(); ok {
			return st.number(n)
		}
		return null(), nil
	}
	var d number.Deviation
	each(values, d.AddValue)
	f, ok := d.Population()
	if name == "$stdDevSamp" {
		f, ok = d.Sample()
	}
	if !ok {
		return null(), nil
	}
	return st.double(f)
}

// buildExtreme makes $min and $max, which pass over null and missing values.
func buildExtreme(p *parser, name string, operands []node) (node, error) {
	collation, direction := p.options.Collation, 1
	if name == "$max" {
		direction = -1
	}
	apply := func(_ *state, values []bsoncore.Value) (bsoncore.Value, error) {
		best := null()
		each(values, func(v bsoncore.Value) {
			if !isNullish(v) && (best.Type == bsoncore.TypeNull || direction*order.Compare(v, best, collation) < 0) {
				best = v
			}
		})
		return best, nil
	}
	if len(operands) > 1 { // a single one may be an array
		operands = p.commute(operands, apply)
	}
	return &nary{operands, apply}, nil
}

// parsePercentile parses {input: ..., p: [...], method: "approximate"}; $median has no p.
func parsePercentile(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(7436200, "specification must be an object; found %s: %s", name, brief(v))
	}
	names := []string{"input", "method", "p"}
	if name == "$median" {
		names = names[:2]
	}
	raw, err := rawFields(v, &fieldSpec{
		names: names, required: len(names),
		unknown: func(field string) error {
			return mongoerror.New(40415, "BSON field '%s.%s' is an unknown field.", name, field)
		},
		missing: func(field string) error {
			return mongoerror.New(40414, "BSON field '%s.%s' is missing but a required field", name, field)
		},
	})
	if err != nil {
		return nil, err
	}
	if !isString(raw[1]) || string(stringOf(raw[1])) != "approximate" {
		return nil, mongoerror.New(mongoerror.BadValue,
			"Currently only 'approximate' can be used as percentile 'method'.")
	}
	fractions := []float64{0.5}
	if name == "$percentile" {
		if fractions, err = p.fractions(raw[2]); err != nil {
			return nil, err
		}
	}
	input, err := p.operand(raw[0])
	if err != nil {
		return nil, err
	}
	return p.fold(&unary{input, func(st *state, v bsoncore.Value) (bsoncore.Value, error) {
		results := make([]bsoncore.Value, len(fractions))
		values := finite(v)
		for i, f := range fractions {
			results[i] = null()
			if len(values) > 0 {
				v, err := st.double(values[Rank(f, len(values))])
				if err != nil {
					return bsoncore.Value{}, err
				}
				results[i] = v
			}
		}
		if name == "$median" {
			return results[0], nil
		}
		return st.array(results)
	}})
}

// fractions reads the p of $percentile, which must be a constant.
func (p *parser) fractions(v bsoncore.Value) ([]float64, error) {
	n, err := p.operand(v)
	if err != nil {
		return nil, err
	}
	c, ok := isConstant(n)
	if !ok || !isArray(c) || count(c.Data) == 0 {
		return nil, mongoerror.New(7750300, "The $percentile 'p' field must be an array of constant values, but found value: %s.", brief(v))
	}
	var list []float64
	it := elementsOf(c.Data)
	for {
		_, element, ok := it.next()
		if !ok {
			return list, nil
		}
		x, ok := number.Of(element)
		if !ok {
			return nil, mongoerror.New(7750301, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s", brief(element))
		}
		f := x.Float64()
		if !(f >= 0 && f <= 1) {
			return nil, mongoerror.New(7750303, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s", brief(element))
		}
		list = append(list, f)
	}
}

// finite returns the numbers of a number or an array in ascending order.
func finite(v bsoncore.Value) []float64 {
	var list []float64
	each([]bsoncore.Value{v}, func(v bsoncore.Value) {
		if n, ok := number.Of(v); ok && !n.IsNaN() {
			list = append(list, n.Float64())
		}
	})
	slices.Sort(list)
	return list
}

// Rank returns the place of a percentile among n > 0 sorted values, as $percentile chooses it: it is always one of the values.
func Rank(fraction float64, n int) int {
	return min(max(int(math.Ceil(float64(n)*fraction))-1, 0), n-1)
}
