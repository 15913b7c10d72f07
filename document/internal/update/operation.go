package update

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// opKind is an update operator.
type opKind uint8

const (
	opSet opKind = iota
	opSetOnInsert
	opUnset
	opInc
	opMul
	opMin
	opMax
	opRename       // at the target: the source's value
	opRenameSource // at the source: goes away when the rename happens
	opCurrentDate
	opPush
	opAddToSet
	opPop
	opPull
	opPullAll
	opBit
)

var opNames = map[string]opKind{
	"$set": opSet, "$setOnInsert": opSetOnInsert, "$unset": opUnset, "$inc": opInc, "$mul": opMul, "$min": opMin, "$max": opMax,
	"$rename": opRename, "$currentDate": opCurrentDate, "$push": opPush, "$addToSet": opAddToSet, "$pop": opPop, "$pull": opPull,
	"$pullAll": opPullAll, "$bit": opBit,
}

// operation is one operator with its operand, at one path.
type operation struct {
	kind   opKind
	value  bsoncore.Value   // the operand; opCurrentDate: the moment; a zero of the operand's type is not stored
	depth  int              // how deeply value is nested
	values []bsoncore.Value // opPush, opAddToSet, opPullAll
	push   *pushClauses     // opPush, when there are any
	first  bool             // opPop: from the beginning
	pull   *condition       // opPull
	bits   []bitwise        // opBit
	source []string         // opRename, opRenameSource
	target []string         // opRename, opRenameSource
}

// creates reports whether the operation makes a field that is not there. Renaming depends on the source, and is not asked here.
func (op *operation) creates(inserting bool) bool {
	switch op.kind {
	case opUnset, opPop, opPull, opPullAll, opRenameSource:
		return false
	case opSetOnInsert:
		return inserting
	}
	return true
}
