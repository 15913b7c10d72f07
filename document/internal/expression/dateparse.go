package expression

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Dates are read in the notations that the server's documentation names: ISO 8601 in its usual forms, American and European
// notations with digits, and names of months; a time of day and a zone may follow. What is relative ("tomorrow") is refused.

// dateText is a date string that is being read, and what was found in it.
type dateText struct {
	whole, rest      string
	year, month, day int
	isoWeek, weekday int // week of the year and weekday, when the date was given so
	yearDay          int
	hour, minute     int
	second, nano     int
	location         *time.Location // nil: the string names no zone
	hasTime          bool
}

func (d *dateText) fail(reason string) error {
	position := len(d.whole) - len(d.rest)
	return failure("Error parsing date string '%s'; %d: %s '%.1s'", d.whole, position, reason, d.rest)
}

// parseDate reads a date in any of the notations. explicit tells that a zone was given beside the string, which then must name none.
func parseDate(s string, location *time.Location, explicit bool) (int64, error) {
	d := &dateText{whole: s, rest: strings.TrimSpace(s)}
	if strings.HasPrefix(d.rest, "@") && !explicit {
		return d.sinceEpoch()
	}
	if strings.IndexByte(s, 0) >= 0 || !d.timeFirst() || !d.date() {
		return 0, d.fail("Unexpected character")
	}
	if d.rest != "" && !d.hasTime && !d.timeOfDay() {
		return 0, d.fail("Unexpected character")
	}
	if d.rest != "" && !d.zone() {
		return 0, d.fail("The timezone could not be found in the database")
	}
	if d.rest != "" {
		return 0, d.fail("Unexpected character")
	}
	return d.result(location, explicit)
}

// timeFirst takes a time of day that stands before the date.
func (d *dateText) timeFirst() bool {
	rest := *d
	if n := rest.run(isDigit); n == 1 || n == 2 {
		rest.rest = rest.rest[n:]
		d.hasTime = strings.HasPrefix(rest.rest, ":") || rest.meridianFollows()
	}
	if !d.hasTime {
		return true
	}
	if !d.timeOfDay() {
		return false
	}
	if d.rest != "" && (isLetter(d.rest[0]) || strings.IndexByte("+-", d.rest[0]) >= 0) && !d.zone() {
		return false
	}
	d.skip(" ,")
	return true
}

// sinceEpoch takes seconds since 1970 behind an at sign.
func (d *dateText) sinceEpoch() (int64, error) {
	seconds, err := strconv.ParseFloat(d.rest[1:], 64)
	if err != nil || !(math.Abs(seconds) <= 1e14) { // also not NaN, which a number can be
		return 0, d.fail("Unexpected character")
	}
	return int64(math.Floor(seconds * 1000)), nil
}

// result checks the parts and puts them together.
func (d *dateText) result(location *time.Location, explicit bool) (int64, error) {
	if d.location != nil && explicit {
		return 0, failure("you cannot pass in a date/time string with time zone information ('%s') together with a timezone argument", d.whole)
	}
	if d.location != nil {
		location = d.location
	}
	if d.hour > 23 || d.minute > 59 || d.second > 59 {
		return 0, d.fail("Unexpected character")
	}
	if d.isoWeek > 0 {
		fourth := time.Date(d.year, 1, 4, 0, 0, 0, 0, time.UTC)
		t := fourth.AddDate(0, 0, 1-isoWeekday(fourth)+(d.isoWeek-1)*7+max(d.weekday, 1)-1)
		d.year, d.month, d.day = t.Year(), int(t.Month()), t.Day()
	}
	if d.yearDay > 0 {
		t := time.Date(d.year, 1, d.yearDay, 0, 0, 0, 0, time.UTC)
		d.month, d.day = int(t.Month()), t.Day()
	}
	if d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31 {
		return 0, d.fail("The parsed date was invalid")
	}
	if last := time.Date(d.year, time.Month(d.month)+1, 0, 0, 0, 0, 0, time.UTC).Day(); d.day > last {
		return 0, failure("Error parsing date string '%s'; %d: The parsed date was invalid ''", d.whole, len(d.whole))
	}
	return readOnClock(d.year, d.month, d.day, d.hour, d.minute, d.second, d.nano, location).UnixMilli(), nil
}

// digits takes between least and most digits.
func (d *dateText) digits(least, most int) (n int, ok bool) {
	i := 0
	for ; i < len(d.rest) && i < most && isDigit(d.rest[i]); i++ {
		n = n*10 + int(d.rest[i]-'0')
	}
	if i < least {
		return 0, false
	}
	d.rest = d.rest[i:]
	return n, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// run returns how many characters at the begin satisfy a condition.
func (d *dateText) run(is func(c byte) bool) int {
	i := 0
	for i < len(d.rest) && is(d.rest[i]) {
		i++
	}
	return i
}

// take takes one of the characters.
func (d *dateText) take(set string) bool {
	if d.rest == "" || strings.IndexByte(set, d.rest[0]) < 0 {
		return false
	}
	d.rest = d.rest[1:]
	return true
}

func (d *dateText) skip(set string) { d.rest = strings.TrimLeft(d.rest, set) }

// monthName takes the name of a month, in full or with three letters.
func (d *dateText) monthName() bool {
	word := d.rest[:d.run(isLetter)]
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if strings.EqualFold(word, name) || strings.EqualFold(word, name[:3]) || m == time.September && strings.EqualFold(word, "sept") {
			d.month, d.rest = int(m), d.rest[len(word):]
			return true
		}
	}
	return false
}

// weekdayName takes the name of a weekday, which means nothing.
func (d *dateText) weekdayName() {
	word := d.rest[:d.run(isLetter)]
	for w := time.Sunday; w <= time.Saturday; w++ {
		if name := w.String(); strings.EqualFold(word, name) || strings.EqualFold(word, name[:3]) {
			d.rest = strings.TrimLeft(d.rest[len(word):], ", ")
			return
		}
	}
}

// date takes the date.
func (d *dateText) date() bool {
	d.weekdayName()
	if d.run(isLetter) > 0 {
		return d.monthName() && d.afterMonthName()
	}
	switch n := d.run(isDigit); {
	case n == 4:
		return d.yearFirst()
	case n == 8:
		d.year, _ = d.digits(4, 4)
		d.month, _ = d.digits(2, 2)
		d.day, _ = d.digits(2, 2)
		return true
	case n == 14:
		d.year, _ = d.digits(4, 4)
		d.month, _ = d.digits(2, 2)
		d.day, _ = d.digits(2, 2)
		d.rest = "T" + d.rest
		return true
	case n == 1 || n == 2:
		return d.dayOrMonthFirst()
	}
	return false
}

// afterMonthName takes "4, 2017" behind the name of a month.
func (d *dateText) afterMonthName() bool {
	d.skip(" .-")
	var ok bool
	if d.run(isDigit) == 4 { // "Feb 2017"
		d.year, _ = d.digits(4, 4)
		d.day = 1
		return true
	}
	if d.day, ok = d.digits(1, 2); !ok {
		return false
	}
	d.ordinal()
	d.skip(" ,.-")
	d.year, ok = d.digits(4, 4)
	return ok
}

// ordinal takes the letters of "4th".
func (d *dateText) ordinal() {
	if len(d.rest) < 2 {
		return
	}
	switch strings.ToLower(d.rest[:2]) {
	case "st", "nd", "rd", "th":
		d.rest = d.rest[2:]
	}
}

// yearFirst takes 2017-07-04, 2017/07/04 and 2017-W27-2.
func (d *dateText) yearFirst() bool {
	d.year, _ = d.digits(4, 4)
	var ok bool
	if strings.HasPrefix(d.rest, "-W") || strings.HasPrefix(d.rest, "W") {
		d.rest = strings.TrimPrefix(d.rest, "-")[1:]
		if d.isoWeek, ok = d.digits(2, 2); !ok || d.isoWeek == 0 {
			return false
		}
		if d.run(isDigit) == 1 || strings.HasPrefix(d.rest, "-") {
			d.take("-")
			d.weekday, ok = d.digits(1, 1)
		}
		return ok
	}
	if !d.take("-/ ") {
		return false
	}
	if d.run(isLetter) > 0 {
		if !d.monthName() {
			return false
		}
		d.skip("- ")
		d.day, ok = d.digits(1, 2)
		return ok
	}
	if d.month, ok = d.digits(1, 2); !ok {
		return false
	}
	d.day = 1
	if d.take("-/") {
		d.day, ok = d.digits(1, 2)
	}
	return ok
}

// dayOrMonthFirst takes 07/04/2017, 04-07-2017, 04.07.2017 and 4 July 2017.
func (d *dateText) dayOrMonthFirst() bool {
	first, _ := d.digits(1, 2)
	var ok bool
	switch {
	case d.take("/"):
		d.month = first
		if d.day, ok = d.digits(1, 2); !ok || !d.take("/") {
			return false
		}
		if d.run(isDigit) == 2 {
			d.year, _ = d.digits(2, 2)
			if d.year += 1900; d.year < 1970 {
				d.year += 100
			}
			return true
		}
	case len(d.rest) > 1 && (d.rest[0] == '-' || d.rest[0] == '.') && isDigit(d.rest[1]):
		d.day = first
		d.take("-.")
		if d.month, ok = d.digits(1, 2); !ok || !d.take("-.") {
			return false
		}
	default:
		d.day = first
		d.ordinal()
		d.skip(" -.")
		if !d.monthName() {
			return false
		}
		d.skip(" -.,")
	}
	d.year, ok = d.digits(4, 4)
	return ok
}

// timeOfDay takes T12:10:40.787, 12:10 PM and the like. It is no error if there is none.
func (d *dateText) timeOfDay() bool {
	marked := d.take("Tt")
	if !marked {
		d.skip(" ,")
	}
	if d.run(isDigit) == 0 {
		return true
	}
	var ok bool
	compact := d.run(isDigit)
	if d.hour, ok = d.digits(1, 2); !ok {
		return false
	}
	if compact >= 4 || d.take(":.") {
		if d.minute, ok = d.digits(2, 2); !ok {
			return false
		}
		if compact == 6 || d.take(":") {
			if d.second, ok = d.digits(2, 2); !ok {
				return false
			}
			d.fraction()
			d.take(".")
		}
	} else if !marked && !d.meridianFollows() {
		return false
	}
	d.meridian()
	return d.hour <= 24
}

// fraction takes the fraction of a second.
func (d *dateText) fraction() {
	if len(d.rest) < 2 || d.rest[0] != '.' && d.rest[0] != ',' || !isDigit(d.rest[1]) {
		return
	}
	d.rest = d.rest[1:]
	for unit := int(time.Second) / 10; d.rest != "" && isDigit(d.rest[0]); unit /= 10 {
		d.nano += unit * int(d.rest[0]-'0')
		d.rest = d.rest[1:]
	}
}

func (d *dateText) meridianFollows() bool {
	rest := strings.ToLower(strings.TrimLeft(d.rest, " "))
	return strings.HasPrefix(rest, "am") || strings.HasPrefix(rest, "pm") || strings.HasPrefix(rest, "a.m.") || strings.HasPrefix(rest, "p.m.")
}

func (d *dateText) meridian() {
	if !d.meridianFollows() {
		return
	}
	d.skip(" ")
	afternoon := d.rest[0]|0x20 == 'p'
	if d.rest[1] == '.' {
		d.rest = d.rest[4:]
	} else {
		d.rest = d.rest[2:]
	}
	d.hour %= 12
	if afternoon {
		d.hour += 12
	}
}

// zone takes an offset or an abbreviation. Names of places are refused, as the server does it.
func (d *dateText) zone() bool {
	d.skip(" ")
	if d.rest == "" {
		return true
	}
	if strings.HasPrefix(strings.ToUpper(d.rest), "GMT") && len(d.rest) > 3 && strings.IndexByte("+-", d.rest[3]) >= 0 {
		d.rest = d.rest[3:]
	}
	if d.rest[0] == '+' || d.rest[0] == '-' {
		rest := strings.TrimLeft(d.rest[1:], "0123456789:")
		s := strings.TrimSuffix(d.rest, rest)
		if len(s) == 2 {
			s = s[:1] + "0" + s[1:]
		}
		offset, ok := zoneOffset(s)
		d.location, d.rest = time.FixedZone("", offset), rest
		return ok
	}
	name := d.rest[:d.run(isLetter)]
	location, ok := abbreviation(name)
	d.location, d.rest = location, d.rest[len(name):]
	return ok
}

// abbreviation returns the zones that are commonly written with letters.
func abbreviation(name string) (*time.Location, bool) {
	name = strings.ToUpper(name)
	if len(name) == 1 { // the letters of nautical zones
		if h := strings.Index("YXWVUTSRQPONZABCDEFGHIKLM", name); h >= 0 {
			return time.FixedZone(name, (h-12)*3600), true
		}
		return nil, false
	}
	hours := map[string]int{
		"UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8,
		"HST": -10, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "WET": 0, "WEST": 1, "BST": 1, "IST": 2, "JST": 9, "MSK": 3, "AEST": 10,
		"NZST": 12, "NZDT": 13,
	}
	h, ok := hours[name]
	return time.FixedZone(name, h*3600), ok
}
