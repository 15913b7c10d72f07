package query

import (
	"encoding/binary"
	"math"
	"sort"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// testOf makes the test of a node that is about one field.
func testOf(n Node, c *collation.Collation) test {
	switch n := n.(type) {
	case *Comparison:
		return newCompareTest(n, c)
	case *In:
		return newInTest(n, c)
	case *ElemMatch:
		return &elementTest{compile(n.Child, c)}
	case *ElemMatchValue:
		return &elementsTest{allTests(testsOf(n.Children, c))}
	case *And:
		return allTests(testsOf(n.Children, c))
	case *Or:
		return anyTest(testsOf(n.Children, c))
	case *Nor:
		return &notTest{anyTest(testsOf(n.Children, c))}
	case *Not:
		return &notTest{testOf(n.Child, c)}
	case *Always:
		return constantTest(n.Value)
	case test:
		return n
	}
	return constantTest(false)
}

func testsOf(nodes []Node, c *collation.Collation) []test {
	tests := make([]test, len(nodes))
	for i, n := range nodes {
		tests[i] = testOf(n, c)
	}
	return tests
}

type constantTest bool

func (t constantTest) test(bsoncore.Value, *int) (bool, error) { return bool(t), nil }

type allTests []test

func (t allTests) test(v bsoncore.Value, _ *int) (bool, error) {
	for _, one := range t {
		if ok, err := one.test(v, nil); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

type anyTest []test

func (t anyTest) test(v bsoncore.Value, _ *int) (bool, error) {
	for _, one := range t {
		if ok, err := one.test(v, nil); ok || err != nil {
			return ok && err == nil, err
		}
	}
	return false, nil
}

type notTest struct{ child test }

func (t *notTest) test(v bsoncore.Value, _ *int) (bool, error) {
	ok, err := t.child.test(v, nil)
	return !ok && err == nil, err
}

// compareTest compares with a value. Numbers and strings, the usual ones, are held decoded.
type compareTest struct {
	value     bsoncore.Value
	class     order.Class
	op        Op
	nan       bool
	collation *collation.Collation
	text      []byte  // the string of a value that is compared byte by byte
	double    float64 // the number, when it is exactly a double
	exact     bool
}

func newCompareTest(n *Comparison, c *collation.Collation) *compareTest {
	t := &compareTest{value: n.Value, class: order.ClassOf(n.Value.Type), op: n.Op, collation: c}
	if x, ok := number.Of(n.Value); ok {
		t.nan = x.IsNaN()
		t.double = x.Float64()
		i, whole := x.Int64()
		t.exact = !t.nan && (n.Value.Type == bsoncore.TypeDouble || whole && int64AsDouble(i))
	}
	if c == nil && n.Value.Type == bsoncore.TypeString {
		t.text = n.Value.Data[4 : len(n.Value.Data)-1]
	}
	return t
}

// int64AsDouble reports whether the integer is so small that doubles near it are exact.
func int64AsDouble(i int64) bool { return i > -1<<53 && i < 1<<53 }

func (t *compareTest) test(v bsoncore.Value, _ *int) (bool, error) {
	switch {
	case t.exact && v.Type == bsoncore.TypeInt32:
		return t.doubles(float64(int32(binary.LittleEndian.Uint32(v.Data)))), nil
	case t.exact && v.Type == bsoncore.TypeDouble:
		return t.doubles(math.Float64frombits(binary.LittleEndian.Uint64(v.Data))), nil
	case t.text != nil && v.Type == bsoncore.TypeString && t.op == Eq:
		return string(v.Data[4:len(v.Data)-1]) == string(t.text), nil
	}
	return t.general(v), nil
}

// doubles compares numbers; those that are no number are in no relation to others.
func (t *compareTest) doubles(f float64) bool {
	switch t.op {
	case Lt:
		return f < t.double
	case Lte:
		return f <= t.double
	case Gt:
		return f > t.double
	case Gte:
		return f >= t.double
	}
	return f == t.double
}

// general compares as MongoDB's filters do: values of one class only, but for null, which stands for what is not there too,
// and for the lowest and the highest key, which are compared with everything.
func (t *compareTest) general(v bsoncore.Value) bool {
	if class := order.ClassOf(v.Type); class != t.class {
		switch t.class {
		case order.ClassNull:
			return class == order.ClassUndefined && t.op != Lt && t.op != Gt
		case order.ClassMaxKey:
			return t.op == Lt || t.op == Lte
		case order.ClassMinKey:
			return t.op == Gt || t.op == Gte
		}
		return false
	}
	if t.class == order.ClassNumber && t.op != Eq {
		if x, _ := number.Of(v); t.nan || x.IsNaN() {
			return t.nan && x.IsNaN() && (t.op == Lte || t.op == Gte)
		}
	}
	return holds(t.op, order.Compare(v, t.value, t.collation))
}

func holds(op Op, r int) bool {
	switch op {
	case Lt:
		return r < 0
	case Lte:
		return r <= 0
	case Gt:
		return r > 0
	case Gte:
		return r >= 0
	}
	return r == 0
}

// inTest looks for a value among sorted ones.
type inTest struct {
	values    []bsoncore.Value
	regexes   []*Regex
	null      bool
	collation *collation.Collation
}

func newInTest(n *In, c *collation.Collation) *inTest {
	t := &inTest{values: n.Values, regexes: n.Regexes, collation: c}
	for _, v := range n.Values {
		t.null = t.null || v.Type == bsoncore.TypeNull
	}
	return t
}

func (t *inTest) test(v bsoncore.Value, _ *int) (bool, error) {
	if v.Type == 0 || v.Type == bsoncore.TypeUndefined {
		return t.null, nil
	}
	i := sort.Search(len(t.values), func(i int) bool { return order.Compare(t.values[i], v, t.collation) >= 0 })
	if i < len(t.values) && order.Equal(t.values[i], v, t.collation) {
		return true, nil
	}
	for _, r := range t.regexes {
		if ok, err := r.test(v, nil); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (n *Exists) test(v bsoncore.Value, _ *int) (bool, error) { return v.Type != 0, nil }

func (n *Type) test(v bsoncore.Value, _ *int) (bool, error) {
	for _, t := range n.Types {
		if v.Type == t {
			return true, nil
		}
	}
	return false, nil
}

func (n *Mod) test(v bsoncore.Value, _ *int) (bool, error) {
	x, ok := number.Of(v)
	if !ok {
		return false, nil
	}
	i, problem := truncate(x)
	if problem != "" {
		return false, nil
	}
	if n.Divisor == -1 {
		return n.Remainder == 0, nil // the lowest integer has no opposite
	}
	return i%n.Divisor == n.Remainder, nil
}

func (n *Size) test(v bsoncore.Value, _ *int) (bool, error) {
	if v.Type != bsoncore.TypeArray {
		return false, nil
	}
	elements := path.ElementsOf(v.Data)
	for i := int64(0); i <= n.N; i++ {
		if _, _, ok := elements.Next(); !ok {
			return i == n.N, nil
		}
	}
	return false, nil
}

// elementTest matches arrays that have an element which is a document, or an array, that a filter matches.
type elementTest struct{ child matcher }

func (t *elementTest) test(v bsoncore.Value, position *int) (bool, error) {
	if v.Type != bsoncore.TypeArray {
		return false, nil
	}
	elements := path.ElementsOf(v.Data)
	for i := 0; ; i++ {
		_, v, ok := elements.Next()
		if !ok {
			return false, nil
		}
		if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
			continue
		}
		if ok, err := t.child.match(object{raw: v.Data}, nil); ok || err != nil {
			if position != nil {
				*position = i
			}
			return ok && err == nil, err
		}
	}
}

// elementsTest matches arrays that have an element which passes all tests.
type elementsTest struct{ child test }

func (t *elementsTest) test(v bsoncore.Value, position *int) (bool, error) {
	if v.Type != bsoncore.TypeArray {
		return false, nil
	}
	elements := path.ElementsOf(v.Data)
	for i := 0; ; i++ {
		_, v, ok := elements.Next()
		if !ok {
			return false, nil
		}
		if ok, err := t.child.test(v, nil); ok || err != nil {
			if position != nil {
				*position = i
			}
			return ok && err == nil, err
		}
	}
}

// test looks at the bits of a number, of which those above are its sign, or of binary data.
func (n *Bits) test(v bsoncore.Value, _ *int) (bool, error) {
	if v.Type == bsoncore.TypeBinary {
		_, data := v.Binary()
		return n.binary(data), nil
	}
	i, ok := bitsOf(v)
	if !ok {
		return false, nil
	}
	set := uint64(i) & n.mask
	switch n.Op {
	case BitsAllSet:
		return set == n.mask, nil
	case BitsAllClear:
		return set == 0, nil
	case BitsAnySet:
		return set != 0, nil
	}
	return set != n.mask, nil
}

// bitsOf returns the integer of whose bits a number has: a double must be one, while a decimal is rounded to one, and is the lowest
// integer where it has none near.
func bitsOf(v bsoncore.Value) (int64, bool) {
	x, ok := number.Of(v)
	if !ok {
		return 0, false
	}
	i, exact := x.Int64()
	if exact || !x.IsDecimal() {
		return i, exact
	}
	if x.IsNaN() || i == math.MaxInt64 || i == math.MinInt64 {
		return math.MinInt64, true
	}
	i, _ = number.FromDecimal(x.Decimal().Quantize(0, number.HalfEven)).Int64()
	return i, true
}

func (n *Bits) binary(data []byte) bool {
	for _, p := range n.Positions {
		at := int(p / 8)
		set := at < len(data) && data[at]>>(p%8)&1 != 0
		switch n.Op {
		case BitsAllSet, BitsAllClear:
			if set != (n.Op == BitsAllSet) {
				return false
			}
		case BitsAnySet, BitsAnyClear:
			if set == (n.Op == BitsAnySet) {
				return true
			}
		}
	}
	return n.Op == BitsAllSet || n.Op == BitsAllClear
}
