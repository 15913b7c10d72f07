package bucket

import (
	"errors"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// malformed is the error of what is no bucket: that of a document that the validator of MongoDB's buckets refuses.
func malformed(format string, args ...any) error {
	return mongoerror.New(mongoerror.DocumentValidationFailure, "Document failed validation: %s", fmt.Sprintf(format, args...))
}

// compressedColumn is the subtype of a compressed column.
const compressedColumn = 7

// Fields says what a time series calls its time and its meta; there may be no meta.
type Fields struct{ Time, Meta string }

// Unpack returns the measurements of a bucket.
func (f Fields) Unpack(doc bsoncore.Document) ([]bsoncore.Document, error) {
	data, meta, err := f.check(doc)
	if err != nil {
		return nil, err
	}
	elements, err := data.Elements()
	if err != nil {
		return nil, malformed("data is no document: %v", err)
	}
	b := newBudget()
	out, err := f.begin(data.Lookup(f.Time), meta, b)
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		name, rows := e.Key(), 0
		err := eachCell(e.Value(), b, func(i int, v bsoncore.Value) error {
			if i >= len(out) {
				return malformed("the column %q has more values than there are measurements", name)
			}
			if v.Type == 0 {
				return nil
			}
			rows++
			before := len(out[i])
			out[i] = bsoncore.AppendValueElement(out[i], name, v)
			return b.spend(0, len(out[i])-before)
		})
		if err != nil {
			return nil, err
		}
		if name == f.Time && rows < len(out) {
			return nil, malformed("a measurement has no %q", f.Time)
		}
	}
	for i := range out {
		if out[i], err = bsoncore.AppendDocumentEnd(out[i], 0); err != nil {
			return nil, malformed("%v", err)
		}
	}
	return out, nil
}

// begin makes the beginnings of as many measurements as there are times.
func (f Fields) begin(times, meta bsoncore.Value, b *budget) (out []bsoncore.Document, err error) {
	if times.Type == 0 {
		return nil, malformed("data has no column %q", f.Time)
	}
	count := 0
	err = eachCell(times, b, func(i int, _ bsoncore.Value) error {
		count = max(count, i+1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := b.spend(0, count*(5+len(f.Meta)+len(meta.Data))); err != nil {
		return nil, err
	}
	out = make([]bsoncore.Document, count)
	for i := range out {
		_, out[i] = bsoncore.AppendDocumentStart(nil)
		if meta.Type != 0 {
			out[i] = bsoncore.AppendValueElement(out[i], f.Meta, meta)
		}
	}
	return out, nil
}

// check makes sure that a document is a bucket as far as MongoDB's validator says what one is, and returns its data and meta.
func (f Fields) check(doc bsoncore.Document) (data bsoncore.Document, meta bsoncore.Value, err error) {
	elements, err := doc.Elements()
	if err != nil {
		return nil, meta, malformed("%v", err)
	}
	required := map[string]bsoncore.Type{"_id": bsoncore.TypeObjectID, "control": bsoncore.TypeEmbeddedDocument, "data": bsoncore.TypeEmbeddedDocument}
	var control bsoncore.Document
	for _, e := range elements {
		v, name := e.Value(), e.Key()
		if t, is := required[name]; is && v.Type != t {
			return nil, meta, malformed("%s is of type %s", name, v.Type)
		}
		delete(required, name)
		switch name {
		case "_id":
		case "control":
			control = v.Data
		case "data":
			data = v.Data
		case "meta":
			meta = v
		default:
			return nil, meta, malformed("a bucket has no field %q", name)
		}
	}
	for name := range required {
		return nil, meta, malformed("%s is missing", name)
	}
	if meta.Type != 0 && f.Meta == "" {
		return nil, meta, malformed("a bucket has a meta, and the time series has none")
	}
	return data, meta, f.checkControl(control)
}

// checkControl checks what a bucket says about its data.
func (f Fields) checkControl(control bsoncore.Document) error {
	version, ok := control.Lookup("version").AsInt64OK()
	if !ok || version < 1 || version > 3 {
		return malformed("control.version is %s", control.Lookup("version"))
	}
	for _, name := range []string{"min", "max"} {
		bounds, isDocument := control.Lookup(name).DocumentOK()
		if !isDocument {
			return malformed("control.%s is no document", name)
		}
		if at := bounds.Lookup(f.Time); at.Type != bsoncore.TypeDateTime {
			return malformed("control.%s has no date %q", name, f.Time)
		}
	}
	return nil
}

// eachCell calls fn with the values of a column of either form, and the numbers of their measurements. One that is missing has Type 0.
func eachCell(v bsoncore.Value, b *budget, fn func(i int, v bsoncore.Value) error) error {
	if subtype, data, ok := v.BinaryOK(); ok && subtype == compressedColumn {
		values, err := decodeColumn(data, b)
		for i := 0; i < len(values) && err == nil; i++ {
			err = fn(i, values[i])
		}
		return err
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return malformed("a column is neither a document nor compressed")
	}
	elements, err := doc.Elements()
	if err != nil {
		return malformed("a column is no document: %v", err)
	}
	for _, e := range elements {
		n, err := strconv.ParseUint(e.Key(), 10, 31)
		if err != nil || n >= maxRows {
			return malformed("a column has a value with the number %q", e.Key())
		}
		if err := errors.Join(b.spend(1, 0), fn(int(n), e.Value())); err != nil {
			return err
		}
	}
	return nil
}
