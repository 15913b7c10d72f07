package number

import "math"

// Power returns x^y rounded once: math.Pow may be several units of the last place off, which is one more than the C library that
// MongoDB's results come from. The calculation is in pairs of doubles (Dekker, "A floating-point technique for extending the
// available precision", 1971).
func Power(x, y float64) float64 {
	plain := math.Pow(x, y)
	if plain == 0 || math.IsInf(plain, 0) || math.IsNaN(plain) || math.Abs(plain) < 0x1p-1000 || x == 0 || y == 0 || x == 1 || math.IsInf(y, 0) {
		return plain
	}
	result := exponential(logarithm(math.Abs(x)).times(pair{y, 0}))
	if plain < 0 {
		return -result
	}
	return result
}

// Exp returns e^x, rounded once.
func Exp(x float64) float64 {
	plain := math.Exp(x)
	if plain < 0x1p-1000 || math.IsInf(plain, 0) || math.IsNaN(plain) || x == 0 {
		return plain
	}
	return exponential(pair{x, 0})
}

// Log returns the natural logarithm, rounded once.
func Log(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) || x == 1 {
		return math.Log(x)
	}
	l := logarithm(x)
	return l.high + l.low
}

// Log10 returns the decimal logarithm by the formula of the C libraries, whose rounding MongoDB's results show: from the logarithm of the
// fraction and log10(2) in two parts, for the exponent (Sun's fdlibm, 1993).
func Log10(x float64) float64 {
	const logTwoHigh, logTwoLow = 3.01029995663611771306e-01, 3.69423907715893078616e-13
	if !(x > 0) || math.IsInf(x, 0) {
		return math.Log10(x)
	}
	fraction, exponent := math.Frexp(x) // the fraction is below 1
	if exponent > 0 {
		fraction, exponent = 2*fraction, exponent-1
	}
	y := float64(exponent)
	low := float64(y*logTwoLow) + float64(1/math.Ln10*Log(fraction))
	return low + float64(y*logTwoHigh)
}

// pair is the sum of two doubles of which the second is at most half a unit of the first's last place.
type pair struct{ high, low float64 }

func twoSum(a, b float64) pair {
	s := a + b
	part := s - a
	return pair{s, (a - (s - part)) + (b - part)}
}

func (p pair) plus(q pair) pair {
	s := twoSum(p.high, q.high)
	return twoSum(s.high, s.low+p.low+q.low)
}

func (p pair) times(q pair) pair {
	product := p.high * q.high
	rest := math.FMA(p.high, q.high, -product)
	return twoSum(product, rest+p.high*q.low+p.low*q.high)
}

// logTwo is the natural logarithm of 2.
func logTwo() pair { return pair{0.6931471805599453, 2.3190468138462996e-17} }

// logarithm improves math.Log by one step of Newton's method.
func logarithm(x float64) pair {
	fraction, exponent := math.Frexp(x)
	estimate := math.Log(fraction)
	power, scale := exponentialParts(pair{-estimate, 0})
	power.high, power.low = math.Ldexp(power.high, scale), math.Ldexp(power.low, scale)
	correction := power.times(pair{fraction, 0}).plus(pair{-1, 0})
	return logTwo().times(pair{float64(exponent), 0}).plus(pair{estimate, 0}.plus(correction))
}

func exponential(p pair) float64 {
	mantissa, scale := exponentialParts(p)
	return math.Ldexp(mantissa.high+mantissa.low, scale)
}

// exponentialParts returns e^p as mantissa and power of two: by a series for the 256th part, squared eight times.
func exponentialParts(p pair) (mantissa pair, scale int) {
	const squarings, terms = 8, 10
	k := math.Round(p.high / math.Ln2)
	rest := p.plus(logTwo().times(pair{-k, 0}))
	rest.high, rest.low = math.Ldexp(rest.high, -squarings), math.Ldexp(rest.low, -squarings)
	sum := pair{1, 0}
	for i := terms; i > 0; i-- { // Horner's scheme: 1 + r/1 (1 + r/2 (1 + ...))
		sum = sum.times(rest).dividedBy(float64(i)).plus(pair{1, 0})
	}
	for range squarings {
		sum = sum.times(sum)
	}
	return sum, int(k)
}

func (p pair) dividedBy(n float64) pair {
	q := p.high / n
	rest := math.FMA(-q, n, p.high) + p.low
	return twoSum(q, rest/n)
}
