package expression

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// parseDatePart parses a date, or {date: ..., timezone: ...}, of $year and its like.
func parseDatePart(p *parser, name string, v bsoncore.Value) (node, error) {
	var operands []node
	var err error
	switch {
	case isObject(v) && !isOperator(v):
		operands, err = p.fields(v, &fieldSpec{
			names: []string{"date", "timezone"}, required: 1,
			unknown: func(field string) error {
				return mongoerror.New(40535, "unrecognized option to %s: \"%s\"", name, field)
			},
			missing: func(string) error {
				return mongoerror.New(40539, "missing 'date' argument to %s, provided: %s", name, brief(v))
			},
		})
	case isArray(v):
		if n := count(v.Data); n != 1 {
			return nil, mongoerror.New(40536, "%s accepts exactly one argument if given an array, but was given %d", name, n)
		}
		operands, err = p.list(v)
		operands = append(operands, nil)
	default:
		operands, err = p.arguments(v)
		operands = append(operands, nil)
	}
	if err != nil {
		return nil, err
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		date, err := operands[0].eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		named, err := optional(st, operands[1])
		if err != nil {
			return bsoncore.Value{}, err
		}
		if isNullish(date) {
			return null(), nil
		}
		ms, err := dateOf(date)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if !isNullish(named) && !isString(named) {
			return bsoncore.Value{}, mongoerror.New(40533, "%s requires a string for the timezone argument, but was given a %s (%s)", name, typeName(named), brief(named))
		}
		location, ok, err := z.of(named, operands[1] != nil)
		if !ok || err != nil {
			return null(), err
		}
		n := datePart(name, at(ms, location))
		if name == "$isoWeekYear" {
			return st.number(number.Int64(int64(n)))
		}
		return st.int32(n)
	}})
}

func datePart(name string, t time.Time) int {
	switch name {
	case "$year":
		return t.Year()
	case "$month":
		return int(t.Month())
	case "$dayOfMonth":
		return t.Day()
	case "$dayOfWeek":
		return int(t.Weekday()) + 1
	case "$dayOfYear":
		return t.YearDay()
	case "$hour":
		return t.Hour()
	case "$minute":
		return t.Minute()
	case "$second":
		return t.Second()
	case "$millisecond":
		return t.Nanosecond() / int(time.Millisecond)
	case "$week":
		return week(t)
	case "$isoWeek":
		_, w := t.ISOWeek()
		return w
	case "$isoWeekYear":
		y, _ := t.ISOWeek()
		return y
	}
	return isoWeekday(t) // $isoDayOfWeek
}

// week counts the weeks of a year that begin on a Sunday; days before the first are in week 0.
func week(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }

// isoWeekday is 1 for Monday and 7 for Sunday.
func isoWeekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

// parseDateToParts parses {date: ..., timezone: ..., iso8601: ...}.
func parseDateToParts(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(40524, "%s only supports an object as its argument", name)
	}
	operands, err := p.fields(v, &fieldSpec{
		names: []string{"date", "timezone", "iso8601"}, required: 1,
		unknown: func(field string) error {
			return mongoerror.New(40520, "Unrecognized argument to %s: %s", name, field)
		},
		missing: func(string) error { return mongoerror.New(40522, "Missing 'date' parameter to %s", name) },
	})
	if err != nil {
		return nil, err
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		date, err := operands[0].eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		named, err := optional(st, operands[1])
		if err != nil {
			return bsoncore.Value{}, err
		}
		location, ok, err := z.of(named, operands[1] != nil)
		if !ok || err != nil {
			return null(), err
		}
		iso, err := optional(st, operands[2])
		switch {
		case err != nil:
			return bsoncore.Value{}, err
		case operands[2] != nil && isNullish(iso):
			return null(), nil
		case operands[2] != nil && iso.Type != bsoncore.TypeBoolean:
			return bsoncore.Value{}, mongoerror.New(40521, "iso8601 must evaluate to a bool, found %s", typeName(iso))
		case isNullish(date):
			return null(), nil
		}
		ms, err := dateOf(date)
		if err != nil {
			return bsoncore.Value{}, err
		}
		return dateParts(st, at(ms, location), Truthy(iso))
	}})
}

func dateParts(st *state, t time.Time, iso bool) (bsoncore.Value, error) {
	names := []string{"year", "month", "day", "hour", "minute", "second", "millisecond"}
	parts := []string{"$year", "$month", "$dayOfMonth", "$hour", "$minute", "$second", "$millisecond"}
	if iso {
		copy(names, []string{"isoWeekYear", "isoWeek", "isoDayOfWeek"})
		copy(parts, []string{"$isoWeekYear", "$isoWeek", "$isoDayOfWeek"})
	}
	values := make([]bsoncore.Value, len(names))
	for i, part := range parts {
		var err error
		if values[i], err = st.int32(datePart(part, t)); err != nil {
			return bsoncore.Value{}, err
		}
	}
	return st.document(names, values)
}

// parseDateFromParts parses the parts of a date, by calendar or by ISO weeks.
func parseDateFromParts(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(40519, "%s only supports an object as its argument", name)
	}
	names := []string{"year", "month", "day", "hour", "minute", "second", "millisecond", "isoWeekYear", "isoWeek", "isoDayOfWeek", "timezone"}
	operands, err := p.fields(v, &fieldSpec{
		names:   names,
		unknown: func(field string) error { return mongoerror.New(40518, "Unrecognized argument to %s: %s", name, field) },
	})
	if err != nil {
		return nil, err
	}
	iso := operands[7] != nil
	for i := range 3 {
		switch {
		case operands[0] != nil && operands[7+i] != nil:
			return nil, mongoerror.New(40489, "%s does not allow mixing natural dates with ISO dates", name)
		case iso && operands[i] != nil && operands[0] == nil:
			return nil, mongoerror.New(40525, "%s does not allow mixing ISO dates with natural dates", name)
		}
	}
	if !iso && operands[0] == nil {
		return nil, mongoerror.New(40516, "%s requires either 'year' or 'isoWeekYear' to be present", name)
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		return fromParts(st, z, names, operands, iso)
	}})
}

const (
	mostYear = 9999
	mostPart = 1<<15 - 1
)

// partOf evaluates one part. ok is false when it is null.
func partOf(st *state, name string, n node, missing int64) (i int64, ok bool, err error) {
	if n == nil {
		return missing, true, nil
	}
	v, err := n.eval(st)
	if err != nil || isNullish(v) {
		return 0, false, err
	}
	i, ok = number64(v)
	if !ok {
		return 0, false, mongoerror.New(40515, "'%s' must evaluate to an integer, found %s with value %s", name, typeName(v), brief(v))
	}
	switch {
	case name == "year" || name == "isoWeekYear" || name == "second" || name == "millisecond":
	case i < -mostPart-1 || i > mostPart:
		return 0, false, mongoerror.New(31034, "'%s' must evaluate to a value in the range [%d, %d]; value %d is not in range", name, -mostPart-1, mostPart, i)
	}
	return i, true, nil
}

func fromParts(st *state, z *zone, names []string, operands []node, iso bool) (bsoncore.Value, error) {
	var parts [10]int64
	evaluate := func(from, to int, missing int64) (ok bool, err error) {
		for i := from; i < to; i++ {
			if parts[i], ok, err = partOf(st, names[i], operands[i], missing); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	// The order decides which of two wrong parts is the error, and whether null comes before one.
	if ok, err := evaluate(3, 7, 0); !ok || err != nil {
		return null(), err
	}
	named, err := optional(st, operands[10])
	if err != nil {
		return bsoncore.Value{}, err
	}
	location, ok, err := z.of(named, operands[10] != nil)
	if err != nil || !ok {
		return null(), err
	}
	first := 0
	if iso {
		first = 7
	}
	if ok, err := evaluate(first, first+3, 1); !ok || err != nil {
		return null(), err
	}
	switch {
	case iso && (parts[7] < 1 || parts[7] > mostYear):
		return bsoncore.Value{}, mongoerror.New(31095, "'isoWeekYear' must evaluate to an integer in the range 1 to %d, found %d", mostYear, parts[7])
	case !iso && (parts[0] < 1 || parts[0] > mostYear):
		return bsoncore.Value{}, mongoerror.New(40523, "'year' must evaluate to an integer in the range 1 to %d, found %d", mostYear, parts[0])
	}
	const year = 366 * 24 * 3600
	if seconds := parts[5]; seconds > 100_000*year || seconds < -100_000*year || parts[6]/1000 > 100_000*year || parts[6]/1000 < -100_000*year {
		return bsoncore.Value{}, mongoerror.New(mongoerror.DurationOverflow, "Overflow casting from a lower-precision duration to a higher-precision duration")
	}
	y, month, day := int(parts[0]), int(parts[1]), int(parts[2])
	if iso {
		// The Monday of ISO week 1 is that of the week with January 4th.
		fourth := time.Date(int(parts[7]), 1, 4, 0, 0, 0, 0, time.UTC)
		monday := fourth.AddDate(0, 0, 1-isoWeekday(fourth))
		first := monday.AddDate(0, 0, int(parts[8]-1)*7+int(parts[9]-1))
		y, month, day = first.Year(), int(first.Month()), first.Day()
	}
	seconds := parts[5] + parts[6]/1000 // of the clock, as hours are; more than an int of 32 bits holds
	hour, minute := int(parts[3]+seconds/3600), int(parts[4]+seconds%3600/60)
	t := readOnClock(y, month, day, hour, minute, int(seconds%60), 0, location)
	return st.date(t.UnixMilli() + parts[6]%1000)
}
