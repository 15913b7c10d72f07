package expression

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// operator is how an operator is parsed: from a list of operands, or from a specification of its own.
type operator struct {
	least, most int // operands
	build       func(p *parser, name string, operands []node) (node, error)
	parse       func(p *parser, name string, v bsoncore.Value) (node, error)
}

func ofOne(apply func(st *state, name string, v bsoncore.Value) (bsoncore.Value, error)) operator {
	return operator{least: 1, most: 1, build: func(_ *parser, name string, operands []node) (node, error) {
		return &unary{operands[0], func(st *state, v bsoncore.Value) (bsoncore.Value, error) { return apply(st, name, v) }}, nil
	}}
}

func ofTwo(apply func(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error)) operator {
	return operator{least: 2, most: 2, build: func(_ *parser, name string, operands []node) (node, error) {
		return &dyadic{operands[0], operands[1], func(st *state, a, b bsoncore.Value) (bsoncore.Value, error) {
			return apply(st, name, a, b)
		}}, nil
	}}
}

// ofMany is an operator all of whose operands are evaluated.
func ofMany(least, most int, apply func(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error)) operator {
	return operator{least: least, most: most, build: func(_ *parser, name string, operands []node) (node, error) {
		return &nary{operands, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) { return apply(st, name, values) }}, nil
	}}
}

// ofLazy is an operator that evaluates its operands itself.
func ofLazy(least, most int, apply func(st *state, name string, operands []node) (bsoncore.Value, error)) operator {
	return operator{least: least, most: most, build: func(_ *parser, name string, operands []node) (node, error) {
		return &lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) { return apply(st, name, operands) }}, nil
	}}
}

func built(least, most int, build func(p *parser, name string, operands []node) (node, error)) operator {
	return operator{least: least, most: most, build: build}
}

func parsed(parse func(p *parser, name string, v bsoncore.Value) (node, error)) operator {
	return operator{parse: parse}
}

// find is the table of all operators, by subject.
func find(name string) (operator, bool) {
	for _, table := range []func(string) (operator, bool){
		findLogic, findArithmetic, findTrigonometry, findString, findArray, findSet, findDate, findConversion, findObject, findAccumulator,
	} {
		if op, ok := table(name); ok {
			return op, true
		}
	}
	return operator{}, false
}

func findLogic(name string) (operator, bool) {
	switch name {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp":
		return built(2, 2, buildComparison), true
	case "$and":
		return built(0, anyNumber, buildAnd), true
	case "$or":
		return built(0, anyNumber, buildOr), true
	case "$not":
		return ofOne(evalNot), true
	case "$cond":
		return parsed(parseCond), true
	case "$ifNull":
		return built(0, anyNumber, buildIfNull), true
	case "$switch":
		return parsed(parseSwitch), true
	case "$let":
		return parsed(parseLet), true
	case "$const", "$literal":
		return parsed(parseLiteral), true
	case "$meta":
		return parsed(parseMeta), true
	case "$rand":
		return parsed(parseRand), true
	case "$function":
		return parsed(parseScript), true
	}
	return operator{}, false
}

func findArithmetic(name string) (operator, bool) {
	switch name {
	case "$abs":
		return ofOne(evalAbs), true
	case "$add":
		return built(0, anyNumber, buildAdd), true
	case "$multiply":
		return built(0, anyNumber, buildMultiply), true
	case "$subtract":
		return ofTwo(evalSubtract), true
	case "$divide":
		return ofTwo(evalDivide), true
	case "$mod":
		return ofTwo(evalMod), true
	case "$ceil", "$floor":
		return ofOne(evalCeilFloor), true
	case "$round", "$trunc":
		return ofMany(1, 2, evalRound), true
	case "$exp":
		return ofOne(evalExp), true
	case "$ln", "$log10":
		return ofOne(evalLogarithm), true
	case "$log":
		return ofTwo(evalLog), true
	case "$pow":
		return ofTwo(evalPow), true
	case "$sqrt":
		return ofOne(evalSqrt), true
	case "$bitAnd", "$bitOr", "$bitXor":
		return ofMany(0, anyNumber, evalBits), true
	case "$bitNot":
		return ofOne(evalBitNot), true
	}
	return operator{}, false
}

func findTrigonometry(name string) (operator, bool) {
	switch name {
	case "$sin", "$cos", "$tan", "$asin", "$acos", "$atan", "$sinh", "$cosh", "$tanh", "$asinh", "$acosh", "$atanh",
		"$degreesToRadians", "$radiansToDegrees":
		return ofOne(evalTrigonometric), true
	case "$atan2":
		return ofTwo(evalAtan2), true
	}
	return operator{}, false
}

func findString(name string) (operator, bool) {
	switch name {
	case "$concat":
		return built(0, anyNumber, buildConcat), true
	case "$indexOfBytes", "$indexOfCP":
		return ofMany(2, 4, evalIndexOf), true
	case "$trim", "$ltrim", "$rtrim":
		return parsed(parseTrim), true
	case "$regexFind", "$regexFindAll", "$regexMatch":
		return parsed(parseRegex), true
	case "$replaceOne", "$replaceAll":
		return parsed(parseReplace), true
	case "$split":
		return ofTwo(evalSplit), true
	case "$strLenBytes", "$strLenCP":
		return ofOne(evalStrLen), true
	case "$strcasecmp":
		return ofTwo(evalStrcasecmp), true
	case "$substr", "$substrBytes":
		return ofMany(3, 3, evalSubstrBytes), true
	case "$substrCP":
		return ofMany(3, 3, evalSubstrCP), true
	case "$toLower", "$toUpper":
		return ofOne(evalCase), true
	case "$binarySize":
		return ofOne(evalBinarySize), true
	}
	return operator{}, false
}

func findArray(name string) (operator, bool) {
	switch name {
	case "$arrayElemAt":
		return ofTwo(evalArrayElemAt), true
	case "$arrayToObject":
		return ofOne(evalArrayToObject), true
	case "$concatArrays":
		return ofLazy(0, anyNumber, evalConcatArrays), true
	case "$filter":
		return parsed(parseFilter), true
	case "$first":
		return ofOne(evalFirst), true
	case "$last":
		return ofOne(evalLast), true
	case "$in":
		return built(2, 2, buildIn), true
	case "$indexOfArray":
		return built(2, 4, buildIndexOfArray), true
	case "$isArray":
		return ofOne(evalIsArray), true
	case "$map":
		return parsed(parseMap), true
	case "$range":
		return ofMany(2, 3, evalRange), true
	case "$reduce":
		return parsed(parseReduce), true
	case "$reverseArray":
		return ofOne(evalReverseArray), true
	case "$size":
		return ofOne(evalSize), true
	case "$slice":
		return ofMany(2, 3, evalSlice), true
	case "$sortArray":
		return parsed(parseSortArray), true
	case "$zip":
		return parsed(parseZip), true
	case "$firstN", "$lastN", "$minN", "$maxN":
		return parsed(parseN), true
	}
	return operator{}, false
}

func findSet(name string) (operator, bool) {
	switch name {
	case "$setUnion", "$setIntersection":
		return built(0, anyNumber, buildSet), true
	case "$setDifference", "$setIsSubset":
		return built(2, 2, buildSet), true
	case "$setEquals":
		return built(0, anyNumber, buildSet), true
	case "$allElementsTrue", "$anyElementTrue":
		return ofOne(evalElementsTrue), true
	}
	return operator{}, false
}

func findDate(name string) (operator, bool) {
	switch name {
	case "$dateAdd", "$dateSubtract":
		return parsed(parseDateAdd), true
	case "$dateDiff":
		return parsed(parseDateDiff), true
	case "$dateTrunc":
		return parsed(parseDateTrunc), true
	case "$dateFromParts":
		return parsed(parseDateFromParts), true
	case "$dateToParts":
		return parsed(parseDateToParts), true
	case "$dateFromString":
		return parsed(parseDateFromString), true
	case "$dateToString":
		return parsed(parseDateToString), true
	case "$year", "$month", "$dayOfMonth", "$dayOfWeek", "$dayOfYear", "$hour", "$minute", "$second", "$millisecond", "$week",
		"$isoWeek", "$isoWeekYear", "$isoDayOfWeek":
		return parsed(parseDatePart), true
	case "$tsSecond", "$tsIncrement":
		return ofOne(evalTimestampPart), true
	}
	return operator{}, false
}

func findConversion(name string) (operator, bool) {
	switch name {
	case "$convert":
		return parsed(parseConvert), true
	case "$toBool", "$toDate", "$toDecimal", "$toDouble", "$toInt", "$toLong", "$toObjectId", "$toString":
		return built(0, anyNumber, buildTo), true
	case "$type":
		return ofOne(evalType), true
	case "$isNumber":
		return ofOne(evalIsNumber), true
	case "$toHashedIndexKey":
		return ofOne(evalHashedKey), true
	}
	return operator{}, false
}

func findObject(name string) (operator, bool) {
	switch name {
	case "$getField":
		return parsed(parseGetField), true
	case "$setField", "$unsetField":
		return parsed(parseSetField), true
	case "$mergeObjects":
		return ofLazy(0, anyNumber, evalMergeObjects), true
	case "$objectToArray":
		return ofOne(evalObjectToArray), true
	case "$bsonSize":
		return ofOne(evalBSONSize), true
	}
	return operator{}, false
}

func findAccumulator(name string) (operator, bool) {
	switch name {
	case "$sum", "$avg", "$stdDevPop", "$stdDevSamp":
		return ofMany(0, anyNumber, evalStatistic), true
	case "$min", "$max":
		return built(0, anyNumber, buildExtreme), true
	case "$median", "$percentile":
		return parsed(parsePercentile), true
	}
	return operator{}, false
}
