package mongo

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// has reports whether a field is there and not null.
func (r *request) has(name string) bool {
	v, ok := r.args[name]
	return ok && v.Type != bsoncore.TypeNull
}

// text returns a field that is a string; "" when it is not there.
func (r *request) text(name string) (string, error) {
	v, ok := r.args[name]
	if !ok || v.Type == bsoncore.TypeNull {
		return "", nil
	}
	s, ok := v.StringValueOK()
	if !ok {
		return "", wrongType(r.name+"."+name, v, "string")
	}
	return s, nil
}

// number returns a field that is a whole number; 0 when it is not there.
func (r *request) number(name string) (int64, error) {
	v, ok := r.args[name]
	if !ok || v.Type == bsoncore.TypeNull {
		return 0, nil
	}
	n, ok := asInt64(v)
	if !ok {
		return 0, wrongType(r.name+"."+name, v, "long")
	}
	return n, nil
}

// size is number for those that must not be negative.
func (r *request) size(name string) (int64, error) {
	n, err := r.number(name)
	if err == nil && n < 0 {
		err = document.NewError(document.Code(51024), "BSON field '%s' value must be >= 0, actual value '%d'", name, n)
	}
	return n, err
}

// coreValue returns a value as package bsoncore has it.
func coreValue(v bson.RawValue) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}
}

// asInt64 returns the value of a number without its fraction: the nearest there is of one that does not fit, and 0 of what is none.
func asInt64(v bsoncore.Value) (int64, bool) {
	if v.Type != bsoncore.TypeDouble && v.Type != bsoncore.TypeDecimal128 {
		return v.AsInt64OK()
	}
	f, isNumber := asDouble(v)
	return clamp(f), isNumber
}

// asDouble returns the double that is nearest to a number.
func asDouble(v bsoncore.Value) (float64, bool) {
	if v.Type != bsoncore.TypeDecimal128 {
		return v.AsFloat64OK()
	}
	f, err := strconv.ParseFloat(bson.NewDecimal128(v.Decimal128()).String(), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		f = math.NaN()
	}
	return f, true
}

func clamp(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// flag returns a field that is a boolean, or a number that stands for one.
func (r *request) flag(name string) (bool, error) {
	v, ok := r.args[name]
	if !ok || v.Type == bsoncore.TypeNull {
		return false, nil
	}
	return asFlag(r.name+"."+name, v)
}

func asFlag(field string, v bsoncore.Value) (bool, error) {
	if b, ok := v.BooleanOK(); ok {
		return b, nil
	}
	if f, isDouble := v.DoubleOK(); isDouble {
		return f != 0, nil
	}
	if high, low, isDecimal := v.Decimal128OK(); isDecimal {
		digits, _, err := bson.NewDecimal128(high, low).BigInt()
		return err != nil || digits.Sign() != 0, nil // an error is NaN or infinity
	}
	if n, ok := v.AsInt64OK(); ok {
		return n != 0, nil
	}
	return false, wrongType(field, v, "bool")
}

// document returns a field that is a document; nil when it is not there.
func (r *request) document(name string) (bsoncore.Document, error) {
	v, ok := r.args[name]
	if !ok || v.Type == bsoncore.TypeNull {
		return nil, nil
	}
	d, ok := v.DocumentOK()
	if !ok {
		return nil, wrongType(r.name+"."+name, v, "object")
	}
	return d, nil
}

// raw returns a field as an argument for package document: nil when it is not there.
func (r *request) raw(name string) any {
	v, ok := r.args[name]
	if !ok || v.Type == bsoncore.TypeNull {
		return nil
	}
	return bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}
}

// optional returns a field that is a document as an argument for package document: nil when it is not there.
func (r *request) optional(name string) (any, error) {
	d, err := r.document(name)
	if d == nil || err != nil {
		return nil, err
	}
	return bson.Raw(d), nil
}

// documents returns a field that is a list of documents: in the body, or as a sequence.
func (r *request) documents(name string) ([]bsoncore.Document, error) {
	if docs, ok := r.docs[name]; ok {
		return docs, nil
	}
	v, ok := r.args[name]
	if !ok {
		return nil, missingField(r.name + "." + name)
	}
	array, ok := v.ArrayOK()
	if !ok {
		return nil, wrongType(r.name+"."+name, v, "array")
	}
	var docs []bsoncore.Document
	n := 0
	for rest := array[4 : len(array)-1]; len(rest) > 0; n++ {
		_, v, after, ok := cutElement(rest)
		if rest = after; !ok {
			return nil, document.NewError(document.FailedToParse, "%s.%s cannot be read", r.name, name)
		}
		doc, isDoc := v.DocumentOK()
		switch {
		case !isDoc:
			return nil, wrongType(fmt.Sprintf("%s.%s.%d", r.name, name, n), v, "object")
		case n < wire.MaxDocuments: // a list of more could be many times as large as they are
			docs = append(docs, doc)
		}
	}
	if n > wire.MaxDocuments {
		return nil, wrongBatchSize(n)
	}
	return docs, nil
}

// missingField is the error of a field that has to be given; field is its path, from the command's name on.
func missingField(field string) error {
	return document.NewError(codeMissingField, "BSON field '%s' is missing but a required field", field)
}

// wrongType is the error of a field that has another type than the one wanted; field is its path, from the command's name on.
func wrongType(field string, v bsoncore.Value, want string) error {
	return document.NewError(document.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", field, document.TypeName(bson.Type(v.Type)), want)
}
