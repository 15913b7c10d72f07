package differential

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// expression is of any type. Those of one type are so mostly, so that most operators get what they take.
func (g generator) expression(depth int) any {
	switch g.IntN(7) {
	case 0, 1:
		return g.numeric(depth)
	case 2:
		return g.stringy(depth)
	case 3:
		return g.dated(depth)
	case 4:
		return g.truth(depth)
	case 5:
		return g.array(depth)
	}
	return g.anything(depth)
}

// leaf is a field, a constant of its type, or now and then something else.
func (g generator) leaf(field string, constant func() any) any {
	switch g.IntN(12) {
	case 0:
		return "$" + g.field()
	case 1:
		return doc("$literal", constant())
	}
	return "$" + field
}

func (g generator) unary(depth int, of func(int) any, names string) any {
	return doc(pick(g, strings.Fields(names)...), of(depth-1))
}

func (g generator) numeric(depth int) any {
	if depth <= 0 {
		return g.leaf("n", g.number)
	}
	number := func() any { return g.numeric(depth - 1) }
	switch g.IntN(17) {
	case 13:
		return g.rounded(depth)
	case 14:
		return pick[any](g, doc(pick(g, "$tsSecond", "$tsIncrement"), pick[any](g, "$a", "$b", bson.Timestamp{T: 7, I: 3})), doc("$binarySize", g.stringy(depth-1)),
			doc("$toInt", doc("$lt", bson.A{doc("$rand", doc()), int32(1)})))
	case 15:
		return doc(pick(g, "$sum", "$avg", "$stdDevPop", "$stdDevSamp", "$min", "$max"), bson.A{number(), number(), g.array(0)})
	case 0:
		return doc(pick(g, "$add", "$multiply", "$subtract", "$divide", "$mod"), bson.A{number(), number()})
	case 1:
		return g.unary(depth, g.numeric, "$abs $ceil $floor $exp $sqrt $trunc $round $toInt $toLong $toDouble $degreesToRadians")
	case 2:
		return doc(pick(g, "$round", "$trunc"), bson.A{number(), g.integer(4) - 1})
	case 3:
		// Of a decimal mongod 6.0.5 takes logarithms to the bases 2 and 10 alone: for another one it divides by the base, not by its logarithm.
		return pick[any](g, doc("$pow", bson.A{number(), pick[any](g, int32(2), 0.5, number())}),
			doc("$log", bson.A{number(), pick[any](g, int32(2), int32(10))}))
	case 4:
		return doc("$size", g.array(depth-1))
	case 5:
		return g.unary(depth, g.array, "$sum $avg $min $max")
	case 6:
		return g.unary(depth, g.stringy, "$strLenCP $strLenBytes $toInt $toDouble")
	case 7:
		return doc(pick(g, "$indexOfCP", "$indexOfBytes"), bson.A{g.stringy(depth - 1), g.stringy(0), g.integer(3)})
	case 8:
		return g.unary(depth, g.dated, "$year $month $dayOfMonth $dayOfWeek $dayOfYear $hour $minute $second $millisecond $week $isoWeek "+
			"$isoWeekYear $isoDayOfWeek $toLong")
	case 9:
		return doc(pick(g, "$cmp", "$strcasecmp"), bson.A{g.stringy(depth - 1), g.stringy(depth - 1)})
	case 10:
		return pick[any](g, doc("$dateDiff", doc("startDate", g.dated(0), "endDate", g.dated(depth-1), "unit", g.unit())),
			doc("$dateDiff", doc("startDate", doc("$toDate", g.clockChange()), "endDate", g.dated(0), "unit", pick(g, "week", "day", "hour", "month"), "timezone", g.zone(),
				"startOfWeek", pick(g, "monday", "Sun", "friday"))),
			doc(pick(g, "$hour", "$dayOfMonth", "$isoWeek", "$week", "$dayOfWeek", "$year"), doc("date", g.dated(0), "timezone", g.zone())))
	case 11:
		return doc("$indexOfArray", bson.A{g.array(depth - 1), g.anything(0)})
	case 12:
		return doc("$reduce", doc("input", g.array(depth-1), "initialValue", g.integer(2), "in", doc(pick(g, "$add", "$max"), bson.A{"$$value", "$$this"})))
	}
	return doc(pick(g, "$add", "$multiply", "$max", "$min", "$avg"), bson.A{number(), number(), number()})
}

// rounded is a function of angles or a logarithm of which a double's last digits may differ, as those of a decimal.
func (g generator) rounded(depth int) any {
	of := doc(pick(g, "$acos", "$acosh", "$asin", "$asinh", "$atan", "$atanh", "$cos", "$cosh", "$sin", "$sinh", "$tan", "$tanh", "$ln", "$log10", "$exp",
		"$radiansToDegrees", "$degreesToRadians", "$sqrt"), g.numeric(depth-1))
	if g.chance(3) {
		of = doc("$atan2", bson.A{g.numeric(depth - 1), g.numeric(0)})
	}
	return doc("$round", bson.A{of, int32(6)})
}

func (g generator) unit() string {
	return pick(g, "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
}

func (g generator) zone() string {
	return pick(g, "UTC", "+02:00", "-0530", "America/New_York", "Europe/Berlin", "GMT", "Australia/Lord_Howe", "America/Sao_Paulo")
}

func (g generator) stringy(depth int) any {
	if depth <= 0 {
		return g.leaf("s", func() any { return g.text() })
	}
	s := func() any { return g.stringy(depth - 1) }
	switch g.IntN(11) {
	case 0:
		return doc("$concat", bson.A{s(), s()})
	case 1:
		return g.unary(depth, g.stringy, "$toLower $toUpper $toString")
	case 2:
		return doc(pick(g, "$trim", "$ltrim", "$rtrim"), pick(g, doc("input", s()), doc("input", s(), "chars", pick[any](g, "a", "ab", s()))))
	case 3:
		return doc(pick(g, "$substrCP", "$substrBytes", "$substr"), bson.A{s(), g.integer(3), g.integer(4) - 1})
	case 4:
		return doc(pick(g, "$replaceOne", "$replaceAll"), doc("input", s(), "find", pick[any](g, "a", "b", s()), "replacement", pick[any](g, "", "zz", s())))
	case 5:
		return doc("$dateToString", doc("date", g.dated(depth-1), "format", pick(g, "%Y-%m-%d", "%H:%M:%S.%L %z", "%G-W%V-%u %j %U %w %Z %%")))
	case 6:
		return doc("$dateToString", doc("date", g.dated(depth-1), "timezone", g.zone(), "onNull", "none"))
	case 7:
		return g.unary(depth, g.expression, "$type $toString")
	case 8:
		return doc("$arrayElemAt", bson.A{doc("$split", bson.A{s(), pick(g, ",", "a", " ")}), g.integer(3) - 1})
	case 9:
		return doc("$getField", doc("field", "match", "input", doc("$regexFind", doc("input", s(), "regex", pick(g, "a", "(a)|(b)", ".$", "[[:alpha:]]+")))))
	}
	return doc("$convert", doc("input", g.expression(depth-1), "to", "string", "onError", "bad", "onNull", "null"))
}

func (g generator) dated(depth int) any {
	if depth <= 0 {
		return g.leaf("t", func() any { return g.date() })
	}
	switch g.IntN(9) {
	case 7:
		return doc(pick(g, "$dateAdd", "$dateSubtract"), doc("startDate", g.dated(0), "unit", g.unit(), "amount", g.integer(5)-2, "timezone", g.zone()))
	case 8:
		return doc("$dateTrunc", doc("date", pick[any](g, g.dated(0), doc("$toDate", g.clockChange())), "unit", g.unit(), "binSize", 1+g.integer(4), "timezone", g.zone()))
	case 0:
		return doc(pick(g, "$dateAdd", "$dateSubtract"), doc("startDate", g.dated(depth-1), "unit", g.unit(), "amount", pick[any](g, g.integer(5)-1, "$n")))
	case 1:
		return doc("$dateTrunc", doc("date", g.dated(depth-1), "unit", g.unit(), "binSize", 1+g.integer(4)))
	case 2:
		return doc("$dateTrunc", doc("date", g.dated(depth-1), "unit", pick(g, "week", "day", "month"), "timezone", g.zone(),
			"startOfWeek", pick(g, "monday", "Sun", "friday")))
	case 3:
		return doc("$dateFromParts", doc("year", 2000+g.integer(3), "month", pick[any](g, g.integer(15), "$n"), "day", pick[any](g, int32(31), "$n"), "hour", g.integer(30)))
	case 4:
		return doc("$dateFromString", doc("dateString", pick[any](g, "2020-02-29T12:34:56Z", "2020-02-29", "Jan 5 2021", "12/31/2020", "$s", "2020-06-01T00:00:00+02:00"),
			"onError", "bad", "onNull", nil))
	case 5:
		return doc(pick(g, "$add", "$subtract"), bson.A{g.dated(depth - 1), g.numeric(depth - 1)})
	}
	return doc("$toDate", pick[any](g, g.dated(depth-1), doc("$toLong", "$n"), g.clockChange()))
}

// clockChange is a time of day around one at which clocks are changed somewhere: an hour at midnight, half an hour, or a whole one.
func (g generator) clockChange() string {
	return fmt.Sprintf("%s%02d:%02d:00Z", pick(g, "2018-11-04T", "2018-02-18T", "2021-10-02T", "2021-04-03T", "2021-03-28T", "2021-11-07T"), g.IntN(24), 15*g.IntN(4))
}

func (g generator) truth(depth int) any {
	if depth <= 0 {
		return g.leaf("a", func() any { return g.chance(2) })
	}
	one, two := g.expression(depth-1), g.expression(depth-1)
	switch g.IntN(9) {
	case 0:
		return doc(pick(g, "$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$and", "$or"), bson.A{one, two})
	case 1:
		return doc(pick(g, "$not", "$isArray", "$isNumber", "$toBool"), bson.A{one})
	case 2:
		return doc("$in", bson.A{one, g.array(depth - 1)})
	case 3:
		return doc(pick(g, "$allElementsTrue", "$anyElementTrue"), bson.A{g.array(depth - 1)})
	case 4:
		return doc(pick(g, "$setEquals", "$setIsSubset"), bson.A{g.array(depth - 1), g.array(depth - 1)})
	case 5:
		return doc("$regexMatch", doc("input", g.stringy(depth-1), "regex", pick[any](g, "^a", "B", "a|b", bson.Regex{Pattern: "b"}),
			"options", pick(g, "", "i", "s")))
	case 6:
		return doc(pick(g, "$lt", "$gte"), bson.A{g.numeric(depth - 1), g.numeric(depth - 1)})
	}
	return doc(pick(g, "$and", "$or"), bson.A{g.truth(depth - 1), g.truth(depth - 1)})
}

func (g generator) array(depth int) any {
	if depth <= 0 {
		return g.leaf(pick(g, "l", "o", "l", "o.x"), func() any { return g.list(3, func() any { return g.value(0) }) })
	}
	one, two := g.array(depth-1), g.array(depth-1)
	switch g.IntN(17) {
	case 0:
		return doc(pick(g, "$concatArrays", "$setUnion", "$setIntersection", "$setDifference"), bson.A{one, two})
	case 1:
		return doc("$map", doc("input", one, "as", "e", "in", pick[any](g, doc("$add", bson.A{"$$e", int32(1)}), doc("v", "$$e", "n", "$n"), "$$e.x",
			doc("$map", doc("input", two, "as", "CURRENT", "in", bson.A{"$x", "$$ROOT.n", "$$e"})))))
	case 2:
		return doc("$filter", doc("input", one, "as", "e", "cond", doc(pick(g, "$gt", "$lte", "$ne"), bson.A{pick(g, "$$e", "$$e.x"), g.expression(0)})))
	case 3:
		return doc("$filter", doc("input", one, "cond", "$$this", "limit", 1+g.integer(2)))
	case 4:
		return doc("$slice", pick(g, bson.A{one, g.integer(5) - 2}, bson.A{one, g.integer(4) - 2, 1 + g.integer(2)}))
	case 5:
		return g.unary(depth, g.array, "$reverseArray")
	case 6:
		return doc("$range", bson.A{int32(0), pick[any](g, g.integer(5), "$n"), 1 + g.integer(2)})
	case 7:
		return doc("$sortArray", doc("input", one, "sortBy", pick[any](g, int32(1), int32(-1), doc("x", int32(1), "y", int32(-1)))))
	case 8:
		return doc("$zip", doc("inputs", bson.A{one, two}, "useLongestLength", true, "defaults", pick(g, bson.A{nil, int32(0)}, bson.A{"$none", g.expression(0)})))
	case 9:
		return doc("$zip", doc("inputs", bson.A{one, two}))
	case 10:
		return doc(pick(g, "$firstN", "$lastN", "$minN", "$maxN"), doc("n", 1+g.integer(3), "input", one))
	case 11:
		return doc("$objectToArray", g.anything(depth-1))
	case 12:
		return doc("$split", bson.A{g.stringy(depth - 1), pick[any](g, ",", "a", g.stringy(0))})
	case 13:
		return doc("$regexFindAll", doc("input", g.stringy(depth-1), "regex", pick(g, "a", "(a)|(b)", "[ab]", "b$", "(?P<x>.)", "(?P<x>.)(?P=x)?", `\p{^L}`, `(.)(.)?\g{-1}?`)))
	case 14:
		list := bson.A{doc("x", one), doc("x", g.anything(0)), doc("x", g.array(0)), doc("x", g.integer(3)), g.anything(0)}
		return doc("$sortArray", doc("input", list, "sortBy", doc(pick(g, "x", "x", "x.0", "x.x"), pick(g, int32(1), int32(-1)))))
	}
	return bson.A{g.expression(depth - 1), g.expression(depth - 1)}
}

// anything is what may have any type: objects, conditions, what looks into arrays and objects.
func (g generator) anything(depth int) any {
	if depth <= 0 {
		return g.leaf(g.field(), func() any { return g.value(1) })
	}
	one, two := g.expression(depth-1), g.expression(depth-1)
	switch g.IntN(17) {
	case 13:
		return doc("$dateToParts", doc("date", g.dated(depth-1), "timezone", g.zone(), "iso8601", g.chance(2)))
	case 14:
		return doc("$getField", pick[any](g, "s", doc("field", doc("$literal", pick(g, "x", "a.x", "$n")), "input", one), doc("field", "x", "input", "$$ROOT")))
	case 15:
		return doc("$regexFind", doc("input", g.stringy(depth-1), "regex", pick[any](g, "(a)(b)?", "^$", bson.Regex{Pattern: "A", Options: "i"}, "\\w+"), "options", pick(g, "", "i", "x")))
	case 0:
		return doc("$cond", bson.A{g.truth(depth - 1), one, two})
	case 1:
		return doc("$ifNull", bson.A{one, two})
	case 2:
		return doc("$switch", doc("branches", bson.A{doc("case", g.truth(depth-1), "then", one), doc("case", g.truth(0), "then", two)}, "default", g.integer(3)))
	case 3:
		return doc("$let", doc("vars", doc("v", one), "in", bson.A{"$$v", two, "$$v.x"}))
	case 4:
		return doc(pick(g, "$arrayElemAt"), bson.A{g.array(depth - 1), g.integer(4) - 2})
	case 5:
		return g.unary(depth, g.array, "$first $last")
	case 6:
		return doc("$mergeObjects", bson.A{"$a", pick[any](g, doc("z", one), "$d")})
	case 7:
		return doc("$setField", doc("field", pick(g, "x", "q.r", "$v"), "input", pick(g, "$a", "$$ROOT"), "value", one))
	case 8:
		return doc("$arrayToObject", pick[any](g, bson.A{bson.A{bson.A{"k", one}}}, bson.A{bson.A{doc("k", "q", "v", two)}}, g.array(depth-1)))
	case 9:
		return doc("x", one, "y", two)
	case 10:
		return doc("$convert", doc("input", one, "to", pick[any](g, "int", "long", "double", "decimal", "bool", "date", int32(2), "objectId"), "onError", "bad"))
	case 11:
		return doc("$unsetField", doc("field", "x", "input", "$a"))
	case 12:
		return doc("$bsonSize", pick(g, "$a", "$$ROOT"))
	}
	return doc(pick(g, "$toDecimal", "$toInt", "$toBool", "$toLong", "$toDouble", "$toDate", "$toString"), one)
}
