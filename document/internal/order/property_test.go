package order

import (
	"math"
	"math/big"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"
)

// numbers generates numbers of all types that lie near one another.
func numbers() *rapid.Generator[bsoncore.Value] {
	ints := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-40, 40), rapid.Int64Range(1<<53-3, 1<<53+3))
	doubles := rapid.OneOf(rapid.Float64(), rapid.Map(ints, func(i int64) float64 { return float64(i) }), rapid.Map(ints, func(i int64) float64 { return float64(i) / 10 }))
	return rapid.Custom(func(t *rapid.T) bsoncore.Value {
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			return bsoncore.Value{Type: bsoncore.TypeInt32, Data: bsoncore.AppendInt32(nil, int32(ints.Draw(t, "int")))}
		case 1:
			return bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, ints.Draw(t, "int"))}
		case 2:
			return bsoncore.Value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, doubles.Draw(t, "double"))}
		}
		d := Decimal{Lo: rapid.Uint64().Draw(t, "lo"), Neg: rapid.Bool().Draw(t, "neg"), Exp: rapid.OneOf(rapid.IntRange(-20, 3), rapid.IntRange(-340, 320), rapid.IntRange(-6176, 6111)).Draw(t, "exp")}
		if rapid.Bool().Draw(t, "small") {
			d.Lo %= 1000
		} else {
			d.Hi = rapid.Uint64Range(0, maxCoefficientHi-1).Draw(t, "hi")
		}
		data, _ := AppendDecimal(nil, d)
		return bsoncore.Value{Type: bsoncore.TypeDecimal128, Data: data}
	})
}

// exact is the value as a fraction; nil for NaN and infinities.
func exact(v bsoncore.Value) *big.Rat {
	switch v.Type {
	case bsoncore.TypeDouble:
		return new(big.Rat).SetFloat64(v.Double())
	case bsoncore.TypeDecimal128:
		d := DecimalAt(v.Data)
		r := new(big.Rat).SetInt(d.coefficient())
		power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(d.Exp, -d.Exp))), nil))
		if d.Exp < 0 {
			power.Inv(power)
		}
		if r.Mul(r, power); d.Neg {
			r.Neg(r)
		}
		return r
	}
	return new(big.Rat).SetInt64(v.AsInt64())
}

// TestNumbersCompareExactly holds Compare against rational numbers, and Hash and Float64 against Compare.
func TestNumbersCompareExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		x, y := exact(a), exact(b)
		if x == nil || y == nil {
			t.Skip("not finite")
		}
		if got, want := Compare(a, b, nil), x.Cmp(y); got != want {
			t.Fatalf("compare %v with %v: %d, want %d", a, b, got, want)
		}
		if f, is := x.Float64(); a.Type == bsoncore.TypeDecimal128 && !math.IsInf(f, 0) {
			got, ok := DecimalAt(a.Data).Float64()
			if ok != is || ok && got != f {
				t.Fatalf("%v as a double: %v %t, want %v %t", a, got, ok, f, is)
			}
			c := bsoncore.Value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, f)}
			if got, want := Compare(a, c, nil), x.Cmp(exact(c)); got != want {
				t.Fatalf("compare %v with the double nearest to it: %d, want %d", a, got, want)
			}
			if Equal(a, c, nil) && Hash(1, a, nil) != Hash(1, c, nil) {
				t.Fatalf("%v and %v are equal and hash differently", a, c)
			}
		}
		if Equal(a, b, nil) && Hash(1, a, nil) != Hash(1, b, nil) {
			t.Fatalf("%v and %v are equal and hash differently", a, b)
		}
	})
}
