package expression

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// zone is the operand that names a time zone; nil is UTC. The last zone that was looked up is remembered.
type zone struct {
	last atomic.Pointer[namedZone]
}

type namedZone struct {
	name     string
	location *time.Location
}

// of returns the zone that v names; ok is false when v is null or missing. present tells whether there was an operand at all.
func (z *zone) of(v bsoncore.Value, present bool) (location *time.Location, ok bool, err error) {
	switch {
	case !present:
		return time.UTC, true, nil
	case isNullish(v):
		return nil, false, nil
	case !isString(v):
		return nil, false, mongoerror.New(40517, "timezone must evaluate to a string, found %s", typeName(v))
	}
	if last := z.last.Load(); last != nil && last.name == string(stringOf(v)) {
		return last.location, true, nil
	}
	name := string(stringOf(v))
	if location, err = loadZone(name); err != nil {
		return nil, false, err
	}
	z.last.Store(&namedZone{name, location})
	return location, true, nil
}

// loadZone finds a zone by its Olson name, or makes one of an offset: +hh, +hhmm or +hh:mm.
func loadZone(name string) (*time.Location, error) {
	unknown := mongoerror.New(40485, "unrecognized time zone identifier: \"%s\"", name)
	if name == "" || strings.EqualFold(name, "local") || isNoZone(name) {
		return nil, unknown
	}
	if name[0] == '+' || name[0] == '-' {
		offset, ok := zoneOffset(name)
		if !ok {
			return nil, unknown
		}
		return time.FixedZone(name, offset), nil
	}
	if name == "UTC" || name == "GMT" {
		return time.UTC, nil
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknown
	}
	return location, nil
}

// isNoZone reports whether a name is none of a zone, though systems have a file of that name with what is a zone elsewhere.
func isNoZone(name string) bool {
	return name == "posixrules" || name == "localtime" || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/")
}

// zoneOffset reads an offset in seconds.
func zoneOffset(s string) (seconds int, ok bool) {
	digits := s[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) != 2 && len(digits) != 4 {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if len(digits) == 2 {
		n *= 100
	}
	seconds = n/100*3600 + n%100*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// dateOf returns the milliseconds of a date, a timestamp or an object id.
func dateOf(v bsoncore.Value) (ms int64, err error) {
	switch v.Type {
	case bsoncore.TypeDateTime:
		return millis(v), nil
	case bsoncore.TypeTimestamp:
		seconds, _, _ := v.TimestampOK()
		return int64(seconds) * 1000, nil
	case bsoncore.TypeObjectID:
		id, _ := v.ObjectIDOK()
		return int64(int32(binary.BigEndian.Uint32(id[:]))) * 1000, nil // MongoDB's seconds of an id have a sign
	}
	return 0, mongoerror.New(16006, "can't convert from BSON type %s to Date", typeName(v))
}

// at returns the moment as seen in a zone.
func at(ms int64, location *time.Location) time.Time { return time.UnixMilli(ms).In(location) }

// onClock is time.Date, but a time of day that a change to summer time skips is that much later, not earlier.
func onClock(year, month, day, hour, minute, second, nano int, location *time.Location) time.Time {
	t := time.Date(year, time.Month(month), day, hour, minute, second, nano, location)
	wanted := time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	_, offset := t.Zone()
	if t.Unix()+int64(offset) == wanted.Unix() {
		return t
	}
	_, before := t.Add(-25 * time.Hour).Zone() // Samoa skipped a whole day
	return wanted.Add(-time.Duration(before) * time.Second).In(location)
}

// readOnClock is onClock for dates that are read: of a time of day that comes twice, when summer time ends, it is the second one, but the
// first when the zone itself has changed.
func readOnClock(year, month, day, hour, minute, second, nano int, location *time.Location) time.Time {
	t := onClock(year, month, day, hour, minute, second, nano, location)
	_, offset := t.Zone()
	_, after := t.Add(3 * time.Hour).Zone()
	if after < offset {
		again := t.Add(time.Duration(offset-after) * time.Second)
		if _, is := again.Zone(); is == after && t.IsDST() != again.IsDST() {
			return again
		}
	}
	return t
}

// dayNumber counts the days of the proleptic Gregorian calendar, by the clock of t's zone, from 1970.
func dayNumber(t time.Time) int64 {
	_, offset := t.Zone()
	return floorDiv(t.Unix()+int64(offset), 24*3600)
}

// dateOfDay returns the date of a dayNumber, which an int of 32 bits may not hold, as it holds each of the three.
func dateOfDay(n int64) (year, month, day int) {
	y, m, d := time.Unix(n*(24*3600), 0).UTC().Date()
	return y, int(m), d
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// ofUnit returns the milliseconds of a unit of constant length.
func ofUnit(unit string) int64 {
	switch unit {
	case "week":
		return 7 * 24 * 3600 * 1000
	case "day":
		return 24 * 3600 * 1000
	case "hour":
		return 3600 * 1000
	case "minute":
		return 60 * 1000
	case "second":
		return 1000
	}
	return 1
}

// monthsOf returns how many months a unit has, 0 when its length is constant.
func monthsOf(unit string) int64 {
	switch unit {
	case "year":
		return 12
	case "quarter":
		return 3
	case "month":
		return 1
	}
	return 0
}

// unitOf reads the unit of $dateAdd and its like.
func unitOf(name string, v bsoncore.Value) (string, error) {
	if !isString(v) {
		return "", mongoerror.New(5439013, "%s requires 'unit' to be a string, but got %s", name, typeName(v))
	}
	switch unit := string(stringOf(v)); unit {
	case "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond":
		return unit, nil
	}
	if name == "$dateAdd" || name == "$dateSubtract" {
		return "", mongoerror.New(mongoerror.FailedToParse, "unknown time unit value: %s", stringOf(v))
	}
	return "", mongoerror.New(5439014, "%s parameter 'unit' value cannot be recognized as a time unit: %s", name, stringOf(v))
}

// weekdayOf reads a startOfWeek.
func weekdayOf(name string, v bsoncore.Value) (time.Weekday, error) {
	if !isString(v) {
		return 0, mongoerror.New(5439015, "%s requires 'startOfWeek' to be a string, but got %s", name, typeName(v))
	}
	text := strings.ToLower(string(stringOf(v)))
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToLower(d.String()); text == full || text == full[:3] {
			return d, nil
		}
	}
	return 0, mongoerror.New(5439016, "%s parameter 'startOfWeek' value cannot be recognized as a day of a week: %s", name, stringOf(v))
}
