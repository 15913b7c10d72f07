package aggregate

import (
	"math"
	"time"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// checkUnit checks the name of a unit of time.
func checkUnit(name string) error {
	if _, ok := unitMillis(name); ok {
		return nil
	}
	switch name {
	case "month", "quarter", "year":
		return nil
	}
	return mongoerror.New(mongoerror.FailedToParse, "unknown time unit value: %s", name)
}

// unitMillis returns the milliseconds of a unit that always has as many.
func unitMillis(name string) (ms int64, fixed bool) {
	switch name {
	case "week":
		return 7 * 24 * 3600 * 1000, true
	case "day":
		return 24 * 3600 * 1000, true
	case "hour":
		return 3600 * 1000, true
	case "minute":
		return 60 * 1000, true
	case "second":
		return 1000, true
	case "millisecond":
		return 1, true
	}
	return 0, false
}

// addUnits adds n units to a date in milliseconds since 1970, in UTC. A day that the month does not have becomes its last one.
func addUnits(ms, n int64, unit string) int64 {
	if size, ok := unitMillis(unit); ok {
		if n != 0 && (n*size/n != size || (n > 0) != (n*size > 0)) {
			if n > 0 {
				return math.MaxInt64
			}
			return math.MinInt64
		}
		return ms + n*size
	}
	months := n
	switch unit {
	case "quarter":
		months *= 3
	case "year":
		months *= 12
	}
	t := time.UnixMilli(ms).UTC()
	y, m, d := t.Date()
	total := int64(y)*12 + int64(m) - 1 + months
	y, m = int(floorDivide(total, 12)), time.Month(total-floorDivide(total, 12)*12+1)
	if last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day(); d > last {
		d = last
	}
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC).UnixMilli()
}

func floorDivide(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
