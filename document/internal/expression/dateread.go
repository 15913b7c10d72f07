package expression

import (
	"strings"
	"time"
)

// parseDateFormat reads a date by a format, which was checked.
func parseDateFormat(s, format string, location *time.Location, explicit bool) (int64, error) {
	d := &dateText{whole: s, rest: s, month: 1, day: 1}
	var have [256]bool
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c == '%' {
			i++
			c = format[i]
			if c != '%' {
				have[c] = true
				if !d.directive(c) {
					return 0, d.fail("Format literal or a part of the date was not found")
				}
				continue
			}
		}
		if !d.take(string(c)) {
			return 0, d.fail("Format literal not found")
		}
	}
	if d.rest != "" {
		return 0, d.fail("Trailing data")
	}
	byWeek := have['G'] || have['V'] || have['u']
	byCalendar := have['Y'] || have['m'] || have['d'] || have['b'] || have['B'] || have['j']
	switch {
	case byWeek && byCalendar:
		return 0, failure("Error parsing date string '%s'; Mixing of ISO dates with natural dates is not allowed", s)
	case byWeek && !have['G'], !byWeek && !have['Y']:
		return 0, failure("an incomplete date/time string has been found, with elements missing: \"%s\"", s)
	case !byWeek && !have['j'] && (!(have['m'] || have['b'] || have['B']) || !have['d']):
		return 0, failure("an incomplete date/time string has been found, with elements missing: \"%s\"", s)
	}
	if byWeek {
		d.isoWeek = max(d.isoWeek, 1)
	}
	return d.result(location, explicit)
}

// directive takes what a letter of the format stands for.
func (d *dateText) directive(c byte) bool {
	var ok bool
	switch c {
	case 'd':
		d.day, ok = d.digits(1, 2)
	case 'm':
		d.month, ok = d.digits(1, 2)
	case 'b', 'B':
		ok = d.monthName()
	case 'Y', 'G':
		d.year, ok = d.digits(1, 4)
	case 'H':
		d.hour, ok = d.digits(1, 2)
		ok = ok && d.hour < 24
	case 'M':
		d.minute, ok = d.digits(2, 2)
	case 'S':
		d.second, ok = d.digits(2, 2)
	case 'L':
		ok = d.run(isDigit) > 0
		for unit := int(time.Second) / 10; unit >= int(time.Millisecond) && d.run(isDigit) > 0; unit /= 10 {
			digit, _ := d.digits(1, 1)
			d.nano += unit * digit
		}
	case 'j':
		d.yearDay, ok = d.digits(1, 3)
		ok = ok && d.yearDay > 0 && d.yearDay <= 366
	case 'V':
		d.isoWeek, ok = d.digits(1, 2)
		ok = ok && d.isoWeek > 0 && d.isoWeek <= 53
	case 'u':
		d.weekday, ok = d.digits(1, 1)
		ok = ok && d.weekday > 0 && d.weekday <= 7
	case 'z':
		return d.rest != "" && d.zone()
	case 'Z':
		return d.minutesOffset()
	}
	return ok
}

// minutesOffset takes an offset in minutes.
func (d *dateText) minutesOffset() bool {
	negative := strings.HasPrefix(d.rest, "-")
	if !d.take("+-") {
		return false
	}
	minutes, ok := d.digits(1, 4)
	if negative {
		minutes = -minutes
	}
	d.location = time.FixedZone("", minutes*60)
	return ok
}
