package aggregate

import "github.com/pandodb/pando/document/internal/mongoerror"

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
