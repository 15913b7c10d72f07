package expression

import (
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// dateFields parses the operands of $dateAdd and its like.
func (p *parser) dateFields(name string, v bsoncore.Value, names []string, required int, object, unknown mongoerror.Code, missing ...mongoerror.Code) ([]node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(object, "%s only supports an object as its argument", name)
	}
	return p.fields(v, &fieldSpec{
		names: names, required: required,
		unknown: func(field string) error {
			return mongoerror.New(unknown, "Unrecognized argument to %s: %s. Expected arguments are %v.", name, field, names)
		},
		missing: func(field string) error {
			i := min(slices.Index(names, field), len(missing)-1)
			return mongoerror.New(missing[i], "Missing '%s' parameter to %s", field, name)
		},
	})
}

// evalAll evaluates operands, those that were left out as missing.
func evalAll(st *state, operands []node) ([]bsoncore.Value, error) {
	values := make([]bsoncore.Value, len(operands))
	for i, n := range operands {
		var err error
		if values[i], err = optional(st, n); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// parseDateAdd is $dateAdd and $dateSubtract: {startDate: ..., unit: ..., amount: ..., timezone: ...}.
func parseDateAdd(p *parser, name string, v bsoncore.Value) (node, error) {
	operands, err := p.dateFields(name, v, []string{"startDate", "unit", "amount", "timezone"}, 3, 5166400, 5166401, 5166402)
	if err != nil {
		return nil, err
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		values, err := evalAll(st, operands)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if isNullish(values[0]) || isNullish(values[1]) || isNullish(values[2]) {
			return null(), nil
		}
		location, ok, err := z.of(values[3], operands[3] != nil)
		if err != nil || !ok {
			return null(), err
		}
		ms, err := dateOf(values[0])
		if err != nil {
			return bsoncore.Value{}, mongoerror.New(5166403, "%s requires startDate to be convertible to a date", name)
		}
		if !isString(values[1]) {
			return bsoncore.Value{}, mongoerror.New(5166404, "%s expects string defining the time unit", name)
		}
		unit, err := unitOf(name, values[1])
		if err != nil {
			return bsoncore.Value{}, err
		}
		amount, ok := number64(values[2])
		if !ok {
			return bsoncore.Value{}, mongoerror.New(5166405, "%s expects integer amount of time units", name)
		}
		if name == "$dateSubtract" {
			if amount == math.MinInt64 {
				return bsoncore.Value{}, mongoerror.New(6045000, "invalid %s 'amount' parameter value: %d %s", name, amount, unit)
			}
			amount = -amount
		}
		sum, err := DateAdd(name, ms, amount, unit, location)
		if err != nil {
			return bsoncore.Value{}, err
		}
		return st.date(sum)
	}})
}

// DateAdd adds an amount of units to a date in milliseconds since 1970, as $dateAdd does, for the operator or stage of a name.
func DateAdd(name string, ms, amount int64, unit string, location *time.Location) (int64, error) {
	if tooManyUnits(amount, unit) {
		return 0, mongoerror.New(errCodeDateAmount, "invalid %s 'amount' parameter value: %d %s", name, amount, unit)
	}
	sum, ok := dateAdd(ms, amount, unit, location)
	switch {
	case !ok && unit == "millisecond":
		return 0, mongoerror.New(mongoerror.DurationOverflow, "%s overflowed", name)
	case !ok:
		return 0, mongoerror.New(errCodeDateOverflow, "%s overflowed", name)
	}
	return sum, nil
}

// errCodeDateOverflow is of calculations that lead beyond the dates there are.
const errCodeDateOverflow mongoerror.Code = 5166406

// errCodeDateAmount is of amounts that lead further than from the first date to the last.
const errCodeDateAmount mongoerror.Code = 5976500

// tooManyUnits reports whether an amount is more than MongoDB takes: about as many as there are between the first date and the last.
func tooManyUnits(amount int64, unit string) bool {
	const days = math.MaxUint64/(24*3600*1000) + 1
	var most int64
	switch m := monthsOf(unit); {
	case unit == "millisecond":
		return false
	case m > 0:
		most = (days/365+1)*12/m - 1
	case unit == "week" || unit == "day":
		most = days/(ofUnit(unit)/ofUnit("day")) - 1
	default:
		most = days*(ofUnit("day")/ofUnit(unit)) - 1
	}
	return amount > most || amount < -most
}

// milliseconds returns a moment in milliseconds since 1970; ok is false for one that no date can be.
func milliseconds(t time.Time) (ms int64, ok bool) {
	ms = t.UnixMilli()
	return ms, floorDiv(ms, 1000) == t.Unix()
}

// dateAdd adds calendar units by the clock of the zone, and those below a day as they are.
func dateAdd(ms, amount int64, unit string, location *time.Location) (int64, bool) {
	t := at(ms, location)
	if months := monthsOf(unit) * amount; months != 0 {
		total := int64(t.Year())*12 + int64(t.Month()) - 1 + months
		year, month := floorDiv(total, 12), total-floorDiv(total, 12)*12+1
		lastDay := time.Date(int(year), time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
		return milliseconds(onDay(int(year), int(month), min(t.Day(), lastDay), t))
	}
	if unit == "day" || unit == "week" {
		year, month, day := dateOfDay(dayNumber(t) + amount*(ofUnit(unit)/ofUnit("day")))
		return milliseconds(onDay(year, month, day, t))
	}
	if length := ofUnit(unit); amount > math.MaxInt64/length || amount < math.MinInt64/length {
		return 0, false
	}
	n, ok := number.AddExact(number.Int64(ms), number.Int64(amount*ofUnit(unit)))
	sum, _ := n.Int64()
	return sum, ok
}

// onDay is the time of day of t on another day, by the clock of t's zone. Of two such times, when clocks are set back, it is that with the
// offset of t.
func onDay(year, month, day int, t time.Time) time.Time {
	name, offset := t.Zone()
	same := time.Date(year, time.Month(month), day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.FixedZone(name, offset)).In(t.Location())
	if _, there := same.Zone(); there == offset {
		return same
	}
	return onClock(year, month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}

// parseDateDiff parses {startDate: ..., endDate: ..., unit: ..., timezone: ..., startOfWeek: ...}.
func parseDateDiff(p *parser, name string, v bsoncore.Value) (node, error) {
	operands, err := p.dateFields(name, v, []string{"startDate", "endDate", "unit", "timezone", "startOfWeek"}, 3, 5166301, 5166302, 5166303, 5166304, 5166305)
	if err != nil {
		return nil, err
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		values, err := evalAll(st, operands)
		if err != nil {
			return bsoncore.Value{}, err
		}
		week := weekly(operands[4], values[2])
		if isNullish(values[0]) || isNullish(values[1]) || isNullish(values[2]) || week && isNullish(values[4]) {
			return null(), nil
		}
		location, ok, err := z.of(values[3], operands[3] != nil)
		if err != nil || !ok {
			return null(), err
		}
		start, err := dateOf(values[0])
		if err != nil {
			return bsoncore.Value{}, mongoerror.New(5166307, "%s requires 'startDate' to be a date, but got %s", name, typeName(values[0]))
		}
		end, err := dateOf(values[1])
		if err != nil {
			return bsoncore.Value{}, mongoerror.New(5166307, "%s requires 'endDate' to be a date, but got %s", name, typeName(values[1]))
		}
		unit, err := unitOf(name, values[2])
		if err != nil {
			return bsoncore.Value{}, err
		}
		first, err := firstDay(name, week, values[4])
		if err != nil {
			return bsoncore.Value{}, err
		}
		n, ok := dateDiff(start, end, unit, location, first)
		if !ok {
			return bsoncore.Value{}, mongoerror.New(5166308, "%s overflowed", name)
		}
		return st.number(number.Int64(n))
	}})
}

// weekly reports whether a startOfWeek is there and counts: it does for weeks only.
func weekly(startOfWeek node, unit bsoncore.Value) bool {
	return startOfWeek != nil && isString(unit) && string(stringOf(unit)) == "week"
}

// firstDay returns the day with which weeks begin: the startOfWeek, if it counts.
func firstDay(name string, counts bool, startOfWeek bsoncore.Value) (time.Weekday, error) {
	if !counts {
		return time.Sunday, nil
	}
	return weekdayOf(name, startOfWeek)
}

// dateDiff counts the boundaries of the unit between two moments.
func dateDiff(start, end int64, unit string, location *time.Location, first time.Weekday) (int64, bool) {
	a, b := at(start, location), at(end, location)
	if m := monthsOf(unit); m > 0 {
		return monthNumber(b, m) - monthNumber(a, m), true
	}
	switch unit {
	case "day":
		return dayNumber(b) - dayNumber(a), true
	case "week":
		return weekNumber(b, first) - weekNumber(a, first), true
	case "millisecond":
		n := number.Subtract(number.Int64(end), number.Int64(start))
		i, _ := n.Int64()
		return i, n.Type() == bsoncore.TypeInt64
	}
	// Hours begin by the clock of the zone, whose offset need not be whole hours. What the clock was changed by in between is no time that
	// has passed, but only whole hours of it count.
	length := ofUnit(unit) / ofUnit("second")
	_, before := a.Zone()
	_, after := b.Zone()
	byClock := floorDiv(b.Unix()+int64(after), length) - floorDiv(a.Unix()+int64(before), length)
	return byClock - int64(after-before)/length, true
}

func monthNumber(t time.Time, months int64) int64 {
	return floorDiv(int64(t.Year())*12+int64(t.Month())-1, months)
}

// weekNumber counts weeks that begin on a weekday. Day 0 was a Thursday.
func weekNumber(t time.Time, first time.Weekday) int64 {
	return floorDiv(dayNumber(t)+int64(time.Thursday)-int64(first), 7)
}

// parseDateTrunc parses {date: ..., unit: ..., binSize: ..., timezone: ..., startOfWeek: ...}.
func parseDateTrunc(p *parser, name string, v bsoncore.Value) (node, error) {
	operands, err := p.dateFields(name, v, []string{"date", "unit", "binSize", "timezone", "startOfWeek"}, 2, 5439007, 5439008, 5439009, 5439010)
	if err != nil {
		return nil, err
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		values, err := evalAll(st, operands)
		if err != nil {
			return bsoncore.Value{}, err
		}
		week := weekly(operands[4], values[1])
		if isNullish(values[0]) || isNullish(values[1]) || operands[2] != nil && isNullish(values[2]) || week && isNullish(values[4]) {
			return null(), nil
		}
		location, ok, err := z.of(values[3], operands[3] != nil)
		if err != nil || !ok {
			return null(), err
		}
		ms, err := dateOf(values[0])
		if err != nil {
			return bsoncore.Value{}, mongoerror.New(5439012, "%s requires 'date' to be a date, but got %s", name, typeName(values[0]))
		}
		unit, err := unitOf(name, values[1])
		if err != nil {
			return bsoncore.Value{}, err
		}
		size, err := binSize(name, operands[2], values[2])
		if err != nil {
			return bsoncore.Value{}, err
		}
		first, err := firstDay(name, week, values[4])
		if err != nil {
			return bsoncore.Value{}, err
		}
		truncated, code := dateTrunc(ms, size, unit, location, first)
		if code != 0 {
			return bsoncore.Value{}, mongoerror.New(code, "%s overflowed", name)
		}
		return st.date(truncated)
	}})
}

// binSize reads the binSize of $dateTrunc.
func binSize(name string, n node, v bsoncore.Value) (int64, error) {
	if n == nil {
		return 1, nil
	}
	size, ok := number64(v)
	switch {
	case !ok:
		return 0, mongoerror.New(5439017, "%s requires 'binSize' to be a 64-bit integer, but got value '%s' of type %s", name, brief(v), typeName(v))
	case size <= 0:
		return 0, mongoerror.New(5439018, "%s requires 'binSize' to be greater than 0, but got value %d", name, size)
	}
	return size, nil
}

// dateTrunc returns the begin of the bin; bins are counted from the begin of the year 2000 by the clock of the zone. code is that of the
// error when they are too large, or the bin begins before the first date there is.
func dateTrunc(ms, size int64, unit string, location *time.Location, first time.Weekday) (begin int64, code mongoerror.Code) {
	const (
		overflow    = mongoerror.Code(5439002)
		binTooLarge = mongoerror.Code(5439005)
		tooEarly    = mongoerror.Code(5439000)
	)
	if monthsOf(unit) > 0 || unit == "day" || unit == "week" {
		return calendarTrunc(at(ms, location), size, unit, first)
	}
	if size > math.MaxInt64/ofUnit(unit) {
		return 0, overflow
	}
	length := ofUnit(unit) * size
	reference := time.Date(referenceYear, 1, 1, 0, 0, 0, 0, location).UnixMilli()
	if ms < math.MinInt64+reference {
		return 0, tooEarly
	}
	bins := floorDiv(ms-reference, length)
	if bins < 0 && length > math.MaxInt64/-bins {
		return 0, binTooLarge
	}
	return reference + bins*length, 0
}

// referenceYear is the year that bins begin with.
const referenceYear = 2000

// calendarTrunc is dateTrunc for units that begin at midnight.
func calendarTrunc(t time.Time, size int64, unit string, first time.Weekday) (begin int64, code mongoerror.Code) {
	const (
		mostUnits   = 100_000_000_000 // in a bin
		binTooLarge = mongoerror.Code(5439006)
	)
	if size > mostUnits {
		return 0, binTooLarge
	}
	reference, months := dayNumber(time.Date(referenceYear, 1, 1, 0, 0, 0, 0, time.UTC)), monthsOf(unit)
	var units int64 // since the reference
	switch {
	case months > 0:
		units = floorDiv(int64(t.Year()-referenceYear)*12+int64(t.Month())-1, months)
	case unit == "day":
		units = dayNumber(t) - reference
	default:
		// The first such weekday at or after the begin of the year.
		reference += (int64(first) - int64(time.Saturday) + 7) % 7
		units = floorDiv(dayNumber(t)-reference, 7)
	}
	if units = floorDiv(units, size) * size; tooManyUnits(units, unit) {
		return 0, errCodeDateAmount
	}
	var year, month, day int
	if months > 0 {
		years := floorDiv(units*months, 12)
		year, month, day = int(referenceYear+years), int(1+units*months-years*12), 1
	} else {
		year, month, day = dateOfDay(reference + units*(ofUnit(unit)/ofUnit("day")))
	}
	ms, ok := milliseconds(readOnClock(year, month, day, 0, 0, 0, 0, t.Location()))
	if !ok {
		return 0, errCodeDateOverflow
	}
	return ms, 0
}
