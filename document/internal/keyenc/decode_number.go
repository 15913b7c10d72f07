package keyenc

import (
	"fmt"
	"math"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/order"
)

// number appends the number that begins with tag: an int32 where the value is one, else an int64, else a double, else a decimal.
func (r *reader) number(dst []byte, tag byte) (bsoncore.Type, []byte, error) {
	start, from := r.at-1, r.mask
	p, err := r.parts(tag)
	if err == nil && p.digits > 0 {
		return r.decimal(dst, p, start, from)
	}
	if err != nil {
		return 0, dst, err
	}
	if p.form == formWhole && p.fraction == 0 {
		i := int64(p.whole)
		if p.negative {
			i = -i
		}
		if i == int64(int32(i)) {
			return bsoncore.TypeInt32, bsoncore.AppendInt32(dst, int32(i)), nil
		}
		return bsoncore.TypeInt64, bsoncore.AppendInt64(dst, i), nil
	}
	f, err := p.double()
	if p.negative {
		f = -f
	}
	return bsoncore.TypeDouble, bsoncore.AppendDouble(dst, f), err
}

// form is how the parts of a number are to be read.
type form uint8

const (
	formWhole form = iota // whole, fraction
	formSmall             // 2^-exponent * 1.fraction
	formLarge             // 2^exponent * 1.fraction
	formInfinite
	formNaN
)

// parts are what the encoding of a number says.
type parts struct {
	form            form
	negative        bool
	whole, fraction uint64
	exponent        int
	digits          int // bytes of digits of a decimal, behind which the encoding ends
}

// parts reads a number up to its end.
func (r *reader) parts(tag byte) (p parts, err error) {
	if tag == tagNaN {
		return parts{form: formNaN}, nil
	}
	magnitude := uint64(tag) - tagZero
	if p.negative = tag < tagZero; p.negative {
		magnitude = tagZero - uint64(tag)
		r.mask = ^r.mask
		defer func() { r.mask = ^r.mask }()
	}
	l := layoutOf(p.negative)
	fraction := true
	switch {
	case magnitude > l.large():
		p.form = formInfinite
		return p, nil
	case magnitude == l.large():
		p.form = formLarge
		p.exponent, err = r.largeExponent()
	default:
		p.whole, fraction, err = r.integer(l, magnitude)
		if err == nil && fraction && p.whole == 0 {
			p.form = formSmall
			p.exponent, err = r.smallExponent()
		}
	}
	if err != nil || !fraction {
		return p, err
	}
	more := false
	if p.fraction, more, err = r.fraction(p.form == formWhole); err == nil && more {
		p.digits, err = r.skipDigits()
	}
	return p, err
}

// integer reads the integer part, and whether a fraction follows.
func (r *reader) integer(l layout, magnitude uint64) (whole uint64, fraction bool, err error) {
	var x, before uint64 // before: how many integer parts have shorter forms
	switch size := magnitude - 2*l.inline; {
	case magnitude < 2*l.inline:
		return magnitude >> 1, magnitude&1 == 1, nil
	case size < l.wide1:
		x, err = r.uint(1)
		x |= size << 8
		before = l.inline
	case size-l.wide1 < l.wide2:
		x, err = r.uint(2)
		x |= (size - l.wide1) << 16
		before = l.inline + l.wide1<<7
	default:
		n := int(size-l.wide1-l.wide2) + shortestLong
		x, err = r.uint(n)
		if err == nil && n > shortestLong && x>>(8*(n-1)) == 0 {
			err = fmt.Errorf("%w: an integer with a byte too many", ErrMalformed)
		}
		before = l.inline + l.wide1<<7 + l.wide2<<15
	}
	if whole = x>>1 + before; err == nil && whole >= 1<<63 {
		err = fmt.Errorf("%w: an integer part of %d", ErrMalformed, whole)
	}
	return whole, x&1 == 1, err
}

func (r *reader) largeExponent() (int, error) {
	e, err := r.uint(2)
	if err == nil && e < 63 {
		err = fmt.Errorf("%w: 2^%d as a large number", ErrMalformed, e)
	}
	return int(e), err
}

func (r *reader) smallExponent() (int, error) {
	b, err := r.next()
	if err != nil {
		return 0, err
	}
	e := exponentTop - int(b)
	if b == longExponent {
		long, err := r.uint(2)
		if e = longTop - int(long); err != nil {
			return 0, err
		}
		if e >= smallExponents {
			return e, nil
		}
	} else if e >= 1 && e < smallExponents {
		return e, nil
	}
	return 0, fmt.Errorf("%w: an exponent of %d", ErrMalformed, e)
}

// fraction reads groups; more tells that digits follow. Behind an integer part a fraction is not 0.
func (r *reader) fraction(notZero bool) (fraction uint64, more bool, err error) {
	more = true
	n := 0
	for last := byte(1); more && n < groups; n++ {
		if last, err = r.next(); err != nil {
			return 0, false, err
		}
		fraction |= uint64(last>>1) << (57 - 7*n)
		if more = last&1 == 1; !more && last == 0 && (n > 0 || notZero) {
			return 0, false, fmt.Errorf("%w: a fraction with a byte too many", ErrMalformed)
		}
	}
	return fraction, more, nil
}

// skipDigits steps over the exponent and the digits of a decimal.
func (r *reader) skipDigits() (n int, err error) {
	if _, err = r.uint(2); err != nil {
		return 0, err
	}
	for more := byte(1); more == 1; n++ {
		if more, err = r.next(); err != nil {
			return 0, err
		}
		more &= 1
	}
	if n > order.MaxDigits/2 {
		return 0, fmt.Errorf("%w: %d pairs of digits", ErrMalformed, n)
	}
	return n, nil
}

// decimal appends the decimal that ends before r.at. What stands before its digits follows from them, and must be just that.
func (r *reader) decimal(dst []byte, p parts, start int, mask byte) (bsoncore.Type, []byte, error) {
	tail := reader{src: r.src[:r.at], at: r.at - p.digits - 2, mask: mask}
	if p.negative {
		tail.mask = ^mask
	}
	e, err := tail.uint(2)
	if err != nil {
		return 0, dst, err
	}
	d := order.Decimal{Neg: p.negative, Exp: int(e) - tailBias - 2*p.digits}
	for range p.digits {
		pair, err := tail.next()
		if err != nil {
			return 0, dst, err
		}
		d.Hi, d.Lo = order.MulAdd(d.Hi, d.Lo, 100, uint64(pair>>1))
	}
	bad := fmt.Errorf("%w: a decimal unlike what it begins with", ErrMalformed)
	if d.IsZero() {
		return 0, dst, bad
	}
	d = d.Reduce()
	grown, ok := dst, d.Digits()+max(d.Exp-maxExponent, 0) <= order.MaxDigits
	if ok {
		grown, ok = order.AppendDecimal(dst, fit(d))
	}
	if !ok {
		return 0, dst, bad
	}
	var buf [64]byte
	again := appendDecimal(buf[:0], d)
	if mask != 0 {
		invert(again)
	}
	if string(again) != string(r.src[start:r.at]) {
		return 0, dst, bad
	}
	return bsoncore.TypeDecimal128, grown, nil
}

// double returns the size of a number as a double, which must have that value exactly.
func (p *parts) double() (float64, error) {
	switch p.form {
	case formNaN:
		return math.Float64frombits(canonicalNaN), nil
	case formInfinite:
		return math.Inf(1), nil
	case formWhole:
		// 53 bits from the highest of the integer part on.
		shift := bits.LeadingZeros64(p.whole)
		top := p.whole << shift
		if shift > 0 {
			top |= p.fraction >> (64 - shift)
		}
		if p.fraction<<shift == 0 && top&(1<<11-1) == 0 {
			return math.Ldexp(float64(top>>11), 64-shift-53), nil
		}
	case formSmall, formLarge:
		e := p.exponent
		if p.form == formSmall {
			e = -e
		}
		precision := min(52, 1074+e) // bits behind the leading one; less for the smallest
		if e < 1024 && precision >= 0 && p.fraction<<precision == 0 {
			return math.Ldexp(float64(1<<52|p.fraction>>12), e-52), nil
		}
	}
	return 0, fmt.Errorf("%w: a number that is no double", ErrMalformed)
}

// skip steps over a value.
func (r *reader) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: more than %d values within one another", ErrMalformed, maxDepth)
	}
	tag, err := r.next()
	if err != nil {
		return err
	}
	switch tag {
	case tagMinKey, tagMaxKey, tagUndefined, tagNull, tagFalse, tagTrue:
		return nil
	case tagString, tagCode:
		return r.skipText()
	case tagObjectID:
		return r.step(objectIDSize)
	case tagDate, tagTimestamp:
		return r.step(8)
	case tagObject:
		return r.skipFields(depth)
	case tagArray:
		for r.at >= len(r.src) || r.src[r.at]^r.mask != terminator {
			if err := r.skip(depth + 1); err != nil {
				return err
			}
		}
		return r.step(1)
	}
	if tag >= tagNaN && tag < tagNumberEnd {
		_, err = r.parts(tag)
		return err
	}
	return r.skipRare(tag, depth)
}

func (r *reader) skipRare(tag byte, depth int) error {
	switch tag {
	case tagBinary, tagDBPointer:
		n, err := r.length()
		if err != nil {
			return err
		}
		if tag == tagBinary {
			return r.step(n + 1)
		}
		return r.step(n + objectIDSize)
	case tagRegex:
		if err := r.skipText(); err != nil {
			return err
		}
		return r.skipText()
	case tagCodeWithScope:
		if err := r.skipText(); err != nil {
			return err
		}
		return r.skipFields(depth)
	}
	return fmt.Errorf("%w: no value begins with %#x", ErrMalformed, tag)
}

func (r *reader) skipFields(depth int) error {
	for {
		class, err := r.next()
		if err != nil || class == terminator {
			return err
		}
		if err := r.skipText(); err != nil {
			return err
		}
		if err := r.skip(depth + 1); err != nil {
			return err
		}
	}
}

// skipText steps behind the next terminator.
func (r *reader) skipText() error {
	for {
		if b, err := r.next(); err != nil || b == terminator {
			return err
		}
	}
}

func (r *reader) step(n int) error {
	if n > len(r.src)-r.at {
		return fmt.Errorf("%w: %d bytes are to follow, %d do", ErrMalformed, n, len(r.src)-r.at)
	}
	r.at += n
	return nil
}
