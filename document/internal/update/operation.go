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

// operatorOf returns the operator of a name.
func operatorOf(name string) (kind opKind, known bool) {
	switch name {
	case "$set":
		return opSet, true
	case "$setOnInsert":
		return opSetOnInsert, true
	case "$unset":
		return opUnset, true
	case "$inc":
		return opInc, true
	case "$mul":
		return opMul, true
	case "$min":
		return opMin, true
	case "$max":
		return opMax, true
	case "$rename":
		return opRename, true
	case "$currentDate":
		return opCurrentDate, true
	case "$push":
		return opPush, true
	case "$addToSet":
		return opAddToSet, true
	case "$pop":
		return opPop, true
	case "$pull":
		return opPull, true
	case "$pullAll":
		return opPullAll, true
	case "$bit":
		return opBit, true
	}
	return 0, false
}

// operation is one operator with its operand, at one path.
type operation struct {
	kind   opKind
	value  bsoncore.Value   // the operand; opCurrentDate: the moment, or the type of timestamps; a zero of the operand's type is not stored
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
