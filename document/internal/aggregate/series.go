package aggregate

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// series is preferred numbers: what buckets with a granularity begin and end at. An empty one, which is not nil, is the powers
// of two. The numbers are those of ISO 3 (R), IEC 60063 (E), and 1, 2, 5.
type series []float64

func granularity(v value) (series, error) {
	name, ok := v.StringValueOK()
	if !ok {
		return nil, mongoerror.New(mongoerror.Code(40261), "The $bucketAuto 'granularity' field must be a string, but found type: %s.", mongoerror.TypeName(v.Type))
	}
	if name == "POWERSOF2" {
		return series{}, nil
	}
	if s := preferred(name); s != nil {
		return s, nil
	}
	return nil, mongoerror.New(mongoerror.Code(40257), "Unknown rounding granularity '%s'", name)
}

func preferred(name string) series {
	switch name {
	case "R5":
		return series{10, 16, 25, 40, 63}
	case "R10":
		return series{100, 125, 160, 200, 250, 315, 400, 500, 630, 800}
	case "R20":
		return series{100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900}
	case "R40":
		return series{100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300, 315, 355, 375,
			400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950}
	case "R80":
		return series{103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290, 307, 325, 345, 365,
			387, 412, 437, 462, 487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975}
	case "1-2-5":
		return series{10, 20, 50}
	case "E6":
		return series{10, 15, 22, 33, 47, 68}
	case "E12":
		return series{10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82}
	case "E24":
		return series{10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91}
	case "E48":
		return threeDigits(48)
	case "E96":
		return threeDigits(96)
	case "E192":
		return threeDigits(192)
	}
	return nil
}

// threeDigits returns E48, E96 or E192: a decade in equal ratios, rounded to three digits. IEC 60063 has one exception, 920.
func threeDigits(n int) series {
	s := make(series, n)
	for i := range s {
		if s[i] = math.Round(math.Pow(10, float64(i)/float64(n)) * 100); n == 192 && s[i] == 919 {
			s[i] = 920
		}
	}
	return s
}

// check refuses what cannot be rounded.
func (s series) check(v value) error {
	if s == nil {
		return nil
	}
	f, ok := float(v)
	switch {
	case !ok:
		return mongoerror.New(mongoerror.Code(40258), "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: %s", mongoerror.TypeName(v.Type))
	case math.IsNaN(f):
		return mongoerror.New(mongoerror.Code(40259), "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN")
	case f < 0:
		return mongoerror.New(mongoerror.Code(40260), "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number")
	}
	return nil
}

// up returns the least number of the series above v, and 0 for 0.
func (s series) up(v value) value {
	f, _ := float(v)
	if f == 0 || math.IsInf(f, 1) {
		return clone(v)
	}
	if len(s) == 0 {
		return power(v, math.Floor(math.Log2(f))+1)
	}
	scale := 1.0
	for f >= s[len(s)-1]*scale {
		scale *= 10
	}
	for f < s[0]*scale {
		above := s[0] * scale
		if scale /= 10; f >= s[len(s)-1]*scale {
			return like(v, above)
		}
	}
	for _, x := range s {
		if x*scale > f {
			return like(v, x*scale)
		}
	}
	return like(v, s[0]*scale*10)
}

// down returns the greatest number of the series below v, and 0 for 0.
func (s series) down(v value) value {
	f, _ := float(v)
	if f == 0 || math.IsInf(f, 1) {
		return clone(v)
	}
	if len(s) == 0 {
		return power(v, math.Ceil(math.Log2(f))-1)
	}
	scale := 1.0
	for f <= s[0]*scale {
		if scale /= 10; scale == 0 { // no number of the series is as small
			return like(v, 0)
		}
	}
	for f > s[len(s)-1]*scale {
		below := s[len(s)-1] * scale
		if scale *= 10; f <= s[0]*scale {
			return like(v, below)
		}
	}
	result := s[0] * scale
	for _, x := range s {
		if x*scale < f {
			result = x * scale
		}
	}
	return like(v, result)
}

// like returns a double, or a decimal where v is one.
func like(v value, f float64) value {
	if v.Type == bsoncore.TypeDecimal128 {
		return number.FromDecimal(number.Double(f).Decimal()).Value()
	}
	return doubleValue(f)
}

// power returns a power of two, as an integer where it is one.
func power(v value, exponent float64) value {
	if v.Type != bsoncore.TypeDecimal128 && exponent >= 0 && exponent < 63 {
		return shortest(1 << int64(exponent))
	}
	if v.Type == bsoncore.TypeDecimal128 {
		return number.FromDecimal(number.DecimalFromInt(2).Pow(number.DecimalFromInt(int64(exponent)))).Value()
	}
	return doubleValue(math.Exp2(exponent))
}
