package number

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func decimal(t *testing.T, s string) Number {
	t.Helper()
	d, ok := ParseDecimal(s)
	if !ok {
		t.Fatalf("%q is no decimal", s)
	}
	return FromDecimal(d)
}

// show writes a number with its type.
func show(n Number) string { return n.Value().String() }

// TestArithmetic has the results that a MongoDB server gives.
func TestArithmetic(t *testing.T) {
	d := func(s string) Number { return decimal(t, s) }
	tests := []struct {
		name string
		got  Number
		want Number
	}{
		{"int32 overflows into int64", Add(Int32(math.MaxInt32), Int32(1)), Int64(1 << 31)},
		{"int64 overflows into double", Add(Int64(math.MaxInt64), Int32(1)), Double(1 << 63)},
		{"int64 stays int64", Add(Int32(1), Int64(2)), Int64(3)},
		{"a sum has doubles in full", Add(Double(0.1), d("1")), d("1.100000000000000005551115123125783")},
		{"an integral double in a sum", Add(Double(1e10), d("1")), d("10000000001")},
		{"exact up to the result", Add(Int64(1<<53+1), Double(0.5)), Double(1<<53 + 2)},
		{"negative zeros", Add(Double(math.Copysign(0, -1)), Double(math.Copysign(0, -1))), Double(0)},
		{"a difference has 15 digits", Subtract(d("1"), Double(0.1)), d("0.900000000000000")},
		{"difference overflows", Subtract(Int64(math.MinInt64), Int32(1)), Double(-1 << 63)},
		{"int32 difference overflows", Subtract(Int32(math.MinInt32), Int32(1)), Int64(math.MinInt32 - 1)},
		{"product overflows", Multiply(Int32(math.MaxInt32), Int32(2)), Int64(4294967294)},
		{"int64 product overflows", Multiply(Int64(1<<62), Int32(4)), Double(1 << 64)},
		{"decimal product", Multiply(Double(3), d("2")), d("6.00000000000000")},
		{"product of infinity", Multiply(d("0"), d("Infinity")), d("NaN")},
		{"product at the upper end", Multiply(d("1E+6111"), d("10")), d("1.0E+6112")},
		{"product at the lower end", Multiply(d("1E-6176"), d("0.6")), d("1E-6176")},
		{"product vanishes", Multiply(d("1E-6176"), d("0.1")), d("0E-6176")},
		{"sum of decimals is infinite", Add(d("9.999999999999999999999999999999999E+6144"), d("9E+6144")), d("Infinity")},
		{"quotient is a double", Divide(Int32(6), Int32(2)), Double(3)},
		{"decimal quotient", Divide(d("1"), Int32(3)), d("0.3333333333333333333333333333333333")},
		{"even decimal quotient", Divide(d("6"), Int32(2)), d("3")},
		{"decimal by double", Divide(d("1.00"), Double(0.5)), d("2")},
		{"subnormal quotient", Divide(d("-1"), d("3E+6144")), d("-3.3333333333333333333333333333333E-6145")},
		{"remainder", Mod(Int32(-5), Int32(3)), Int32(-2)},
		{"remainder of the least int64", Mod(Int64(math.MinInt64), Int32(-1)), Int64(0)},
		{"remainder of a huge decimal", Mod(d("1E+6144"), d("7")), d("1")},
		{"remainder of a negative decimal", Mod(d("-7.5"), d("2")), d("-1.5")},
		{"remainder by infinity", Mod(d("7"), d("Infinity")), d("7")},
	}
	for _, test := range tests {
		if show(test.got) != show(test.want) {
			t.Errorf("%s: got %s, want %s", test.name, show(test.got), show(test.want))
		}
	}
}

func TestExactArithmetic(t *testing.T) {
	if _, ok := AddExact(Int64(math.MaxInt64), Int32(1)); ok {
		t.Error("an update's int64 sum that overflows is an error")
	}
	if _, ok := MultiplyExact(Int64(1<<62), Int32(4)); ok {
		t.Error("an update's int64 product that overflows is an error")
	}
	if n, ok := MultiplyExact(Int64(math.MinInt64), Int32(1)); !ok || show(n) != show(Int64(math.MinInt64)) {
		t.Errorf("the least int64 times one: %v %v", show(n), ok)
	}
	if n, ok := AddExact(decimal(t, "1"), Double(0.1)); !ok || show(n) != show(decimal(t, "1.100000000000000")) {
		t.Errorf("a double that is added to a decimal has 15 digits: %s", show(n))
	}
	if n, ok := Bits(Int32(-1), Int64(1<<40), And); !ok || show(n) != show(Int64(1<<40)) {
		t.Errorf("bits of mixed integers: %s %v", show(n), ok)
	}
	if _, ok := Bits(Int32(1), Double(1), Or); ok {
		t.Error("a double has no bits")
	}
}

func TestSum(t *testing.T) {
	d := func(s string) Number { return decimal(t, s) }
	tests := []struct {
		add  []Number
		want Number
	}{
		{nil, Int32(0)},
		{[]Number{Int32(math.MaxInt32), Int32(1)}, Int64(1 << 31)},
		{[]Number{Int64(math.MaxInt64), Int64(1)}, Double(1 << 63)},
		{[]Number{Int64(math.MaxInt64), Int64(1), Int64(-1)}, Int64(math.MaxInt64)},
		{[]Number{Double(0.1), Double(0.2), Double(0.3)}, Double(0.6)},
		{[]Number{Double(1e308), Double(1e308), Double(-1e308)}, Double(math.Inf(1))},
		{[]Number{Double(0.1), Double(0.2), d("1")}, d("1.300000000000000016653345369377348")},
		{[]Number{d("1E+3")}, d("1000")},
		{[]Number{d("-0")}, d("0")},
		{[]Number{d("1.10"), d("2.2")}, d("3.30")},
		{[]Number{Int64(1<<53 + 1), d("0.5")}, d("9007199254740993.5")},
		{[]Number{Double(math.Copysign(0, -1))}, Double(0)},
	}
	for _, test := range tests {
		var s, left, right Sum
		for i, n := range test.add {
			s.Add(n)
			if i%2 == 0 {
				left.Add(n)
			} else {
				right.Add(n)
			}
		}
		if show(s.Result()) != show(test.want) {
			t.Errorf("sum of %v: got %s, want %s", test.add, show(s.Result()), show(test.want))
		}
		left.Merge(&right)
		if show(left.Result()) != show(test.want) && !test.want.IsInf() {
			t.Errorf("merged sum of %v: got %s, want %s", test.add, show(left.Result()), show(test.want))
		}
	}
}

// TestSumInOrder: the last digits are those of mongod 6.0.5, which are not always those of the exact sum.
func TestSumInOrder(t *testing.T) {
	for _, test := range []struct {
		add  []Number
		want float64
	}{
		{[]Number{Double(1), Double(-0.416147), Double(-0.989992)}, -0.40613900000000003},
		{[]Number{Double(1e16), Int32(1), Double(-1e16), Double(0.25)}, 1.25},
	} {
		var s Sum
		for _, n := range test.add {
			s.Add(n)
		}
		if got := s.Result().Float64(); got != test.want {
			t.Errorf("sum of %v: got %v, want %v", test.add, got, test.want)
		}
	}
}

// TestMergedInfinities: an infinity with other numbers behind it stays one in the sum that it is merged into.
func TestMergedInfinities(t *testing.T) {
	for _, infinity := range []float64{math.Inf(1), math.Inf(-1)} {
		var behind, sum Sum
		for _, n := range []Number{Double(infinity), Int32(3), Double(0.5)} {
			behind.Add(n)
		}
		sum.Add(Int32(2))
		sum.Merge(&behind)
		sum.Merge(&behind)
		if got := sum.Result().Float64(); got != infinity {
			t.Errorf("%g and numbers behind it are %g", infinity, got)
		}
	}
}

func TestAverageAndDeviation(t *testing.T) {
	var a Average
	if _, ok := a.Result(); ok {
		t.Error("the mean of nothing")
	}
	a.AddValue(Double(0.1).Value())
	a.AddValue(decimal(t, "1").Value())
	a.AddValue(bsoncore.Value{Type: bsoncore.TypeNull})
	if n, _ := a.Result(); show(n) != show(decimal(t, "0.5500000000000000027755575615628915")) {
		t.Errorf("mean: %s", show(n))
	}
	var d Deviation
	for _, f := range []float64{1, 2, 4} {
		d.AddValue(Double(f).Value())
	}
	if f, ok := d.Sample(); !ok || math.Abs(f-1.5275252316519465) > 1e-15 {
		t.Errorf("sample deviation %v", f)
	}
}

func TestConversions(t *testing.T) {
	for s, want := range map[string]string{
		"1.2345678901234567890123456789012345678901": "1.234567890123456789012345678901234",
		"inf": "Infinity", "-Infinity": "-Infinity", "nan": "NaN", ".5": "0.5", "5.": "5", "-0": "-0", "1e3": "1E+3",
	} {
		if got := decimal(t, s).String(); got != want {
			t.Errorf("%q is read as %s, want %s", s, got, want)
		}
	}
	for _, s := range []string{"", "+", " 1", "1_0", "0x1", "--1", "1e", "e5", "infin"} {
		if d, ok := ParseDecimal(s); ok {
			t.Errorf("%q is read as %s", s, d)
		}
	}
	for f, want := range map[float64]string{0.1: "0.100000000000000", 3: "3.00000000000000", 5e-324: "4.94065645841247E-324", 0: "0"} {
		if got := DecimalFromFloat(f).String(); got != want {
			t.Errorf("%g is %s, want %s", f, got, want)
		}
	}
	for s, want := range map[string]int64{"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64, "1E+3": 1000, "10E-1": 1} {
		if i, exact := decimal(t, s).Int64(); i != want || !exact {
			t.Errorf("%s as int64: %d %v", s, i, exact)
		}
	}
	for _, s := range []string{"9223372036854775808", "1.5", "NaN", "-9223372036854775809", "1E+6000"} {
		if _, exact := decimal(t, s).Int64(); exact {
			t.Errorf("%s is no int64", s)
		}
	}
}

// TestNonCanonicalDecimals: coefficients beyond 34 digits mean zero, and must survive everything.
func TestNonCanonicalDecimals(t *testing.T) {
	for _, hi := range []uint64{0x6000000000000000, 0x3041ffffffffffff, 0x7c00000000000001, math.MaxUint64} {
		d := Decimal{hi, math.MaxUint64}
		_ = d.Add(d).Multiply(d).Divide(d).Mod(d).Quantize(2, Floor)
		if s := d.Sign(); s != 0 {
			t.Errorf("%x has the sign %d", hi, s)
		}
	}
}

func FuzzParseDecimal(f *testing.F) {
	f.Add("1.5e300")
	f.Add("-Infinity")
	f.Fuzz(func(t *testing.T, s string) {
		if d, ok := ParseDecimal(s); ok {
			if again, ok := ParseDecimal(d.String()); !ok || again != d && d.Sign() != 0 {
				t.Errorf("%q is %s, which is read as %s", s, d, again)
			}
		}
	})
}

// TestTranscendental has results of a MongoDB server.
func TestTranscendental(t *testing.T) {
	d := func(s string) Decimal { x, _ := ParseDecimal(s); return x }
	tests := []struct {
		name string
		got  Decimal
		want string
	}{
		{"exp 1", d("1").Exp(), "2.718281828459045235360287471352662"},
		{"ln 10", d("10").Ln(), "2.302585092994045684017991454684364"},
		{"log 8 to base 2", d("8").Log(d("2")), "3"},
		{"sqrt 2", d("2").Sqrt(), "1.414213562373095048801688724209698"},
		{"sqrt 4", d("4").Sqrt(), "2"},
		{"sqrt 4.00", d("4.00").Sqrt(), "2.0"},
		{"sqrt of what is almost a square", d("99999999999999999999").Sqrt(), "9999999999.999999999950000000000000"},
		{"sqrt 0E+3", d("0E+3").Sqrt(), "0E+1"},
		{"sqrt -0E-7", d("-0E-7").Sqrt(), "-0.0000"},
		{"2^0.5", d("2").Pow(d("0.5")), "1.414213562373095048801688724209698"},
		{"the least^1", d("1E-6176").Pow(d("1")), "1E-6176"},
		{"the greatest^-1", d("9.999999999999999999999999999999999E+6144").Pow(d("-1")), "1.0000000000000000000000000000000E-6145"},
		{"1E+6144^-1", d("1E+6144").Pow(d("-1")), "1.00000000000000000000000000000000E-6144"},
		{"inf^the least", d("Infinity").Pow(d("1E-6176")), "Infinity"},
		{"inf^-1", d("Infinity").Pow(d("-1")), "0E-6176"},
		{"-inf^odd", d("-Infinity").Pow(d("9223372036854775807")), "-Infinity"},
		{"-inf^even", d("-Infinity").Pow(d("9223372036854775808")), "Infinity"},
		{"-inf^-3", d("-Infinity").Pow(d("-3")), "0E-6176"},
		{"0.5^inf", d("0.5").Pow(d("Infinity")), "0E-6176"},
		{"0.5^-inf", d("0.5").Pow(d("-Infinity")), "Infinity"},
		{"-2^inf", d("-2").Pow(d("Infinity")), "Infinity"},
		{"-2^-inf", d("-2").Pow(d("-Infinity")), "0E-6176"},
		{"0^-inf", d("0").Pow(d("-Infinity")), "Infinity"},
		{"sin 1", d("1").Trigonometric("sin"), "0.8414709848078965066525023216302990"},
		{"tan 1", d("1").Trigonometric("tan"), "1.557407724654902230506974807458360"},
		{"asin 0.5", d("0.5").Trigonometric("asin"), "0.5235987755982988730771072305465838"},
		{"sinh 1", d("1").Trigonometric("sinh"), "1.175201193643801456882381850595601"},
		{"acosh 2", d("2").Trigonometric("acosh"), "1.316957896924816708625046347307968"},
		{"atanh 0.5", d("0.5").Trigonometric("atanh"), "0.5493061443340548456976226184612629"},
		{"atan2 1 2", d("1").Atan2(d("2")), "0.4636476090008061162142562314612144"},
		{"atan2 inf 2", d("Infinity").Atan2(d("2")), "1.570796326794896619231321691639751"},
		{"atan2 -inf inf", d("-Infinity").Atan2(d("Infinity")), "-0.7853981633974483096156608458198757"},
		{"atan2 -inf -inf", d("-Infinity").Atan2(d("-Infinity")), "-2.356194490192344928846982537459627"},
		{"atan2 2 -inf", d("2").Atan2(d("-Infinity")), "3.141592653589793238462643383279503"},
		{"atan2 -0 -inf", d("-0").Atan2(d("-Infinity")), "-3.141592653589793238462643383279503"},
		{"atan2 -2 inf", d("-2").Atan2(d("Infinity")), "-0E-6176"},
		{"atan2 0 1", d("0").Atan2(d("1")), "0"},
		{"sin of 10^30", d("1E+30").Trigonometric("sin"), "-0.09011690191213805803038642895298733"},
		{"180 degrees", d("180").Radians(), "3.141592653589793238462643383279503"},
		{"3 radians", d("3").Degrees(), "171.8873385392469626303944644423155"},
	}
	for _, test := range tests {
		if got := test.got.String(); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	for _, name := range []string{"sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh"} {
		for _, s := range []string{"1E-6176", "1E-30", "-2", "1048576", "9.9E+6144", "Infinity", "-0"} {
			f := map[string]func(float64) float64{"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "atan": math.Atan,
				"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh}[name]
			got, want := d(s).Trigonometric(name).Float64(), f(d(s).Float64())
			if math.Abs(got-want) > 1e-9*math.Abs(want) && !math.IsNaN(want) {
				t.Errorf("%s(%s) is %g, want %g", name, s, got, want)
			}
		}
	}
}

// TestQuantize rounds what is far below the last place that is kept, too.
func TestQuantize(t *testing.T) {
	for _, test := range []struct {
		d                               string
		places                          int
		even, truncated, ceiling, floor string
	}{
		{"12.5", 0, "12", "12", "13", "12"},
		{"0.5", 0, "0", "0", "1", "0"},
		{"0.06", 0, "0", "0", "1", "0"},
		{"-0.06", 0, "-0", "-0", "-0", "-1"},
		{"1E-6176", 0, "0", "0", "1", "0"},
		{"-1E-6176", 2, "-0.00", "-0.00", "-0.00", "-0.01"},
		{"3", -2, "0E+2", "0E+2", "1E+2", "0E+2"},
		{"0.00", 0, "0", "0", "0", "0"},
	} {
		d, ok := ParseDecimal(test.d)
		if !ok {
			t.Fatalf("%s is no decimal", test.d)
		}
		for how, want := range map[Rounding]string{HalfEven: test.even, Truncate: test.truncated, Ceiling: test.ceiling, Floor: test.floor} {
			if got := d.Quantize(test.places, how).String(); got != want {
				t.Errorf("%s to %d places, way %d: %s, want %s", test.d, test.places, how, got, want)
			}
		}
	}
}

// TestLogarithmsOfTheSmallestDoubles has doubles of fewer than 53 bits.
func TestLogarithmsOfTheSmallestDoubles(t *testing.T) {
	if got := Log10(1e-320); got != -320.000004834948 {
		t.Errorf("log10 of 1e-320: %v", got)
	}
	if got := Log(5e-324); got != -744.4400719213812 {
		t.Errorf("ln of 5e-324: %v", got)
	}
}

func TestPower(t *testing.T) {
	for _, test := range []struct{ x, y, want float64 }{
		{0.1, 10, 1.0000000000000006e-10}, {1 << 62, 2.5, 4.567192616659072e+46}, {1 << 62, -2.5, 2.1895288505075267e-47},
		{2, 0.5, math.Sqrt2}, {10, 22, 1e22}, {-3, 3, -27}, {1.5, 1, 1.5}, {2, -1074, math.Pow(2, -1074)}, {10, 308, 1e308},
		{0, 5, 0}, {5, 0, 1}, {1e300, 2, math.Inf(1)},
		{1, math.NaN(), 1}, {1, math.Inf(1), 1}, {1, math.Inf(-1), 1}, {-1, math.Inf(1), 1}, {-1, math.Inf(-1), 1}, {0.5, math.Inf(-1), math.Inf(1)},
	} {
		if got := Power(test.x, test.y); got != test.want {
			t.Errorf("%g^%g is %v, want %v", test.x, test.y, got, test.want)
		}
	}
}

// TestDoublesAsTheServerRoundsThem has results of a MongoDB server, which the functions of package math miss by a unit of the last place.
func TestDoublesAsTheServerRoundsThem(t *testing.T) {
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"exp", Exp(0.9820766375385342), 2.669995100891919},
		{"exp", Exp(45.47016300456639), 5.590374265893448e+19},
		{"log", Log(0.5911534350013039), -0.525679675979749},
		{"log", Log(3), 1.0986122886681098},
		{"log", Log(1), 0},
		{"log10", Log10(7.9), 0.8976270912904414},
		{"log10", Log10(15), 1.1760912590556813},
		{"log10", Log10(1000), 3},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
}
