package document

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/update"
)

// JSON is a document as Extended JSON, canonical or relaxed, wherever a document is asked for.
type JSON string

// toDocument returns the BSON of what a caller passes as a document: bson.D, bson.M, bson.Raw, a struct, JSON, or a map. nil is
// the empty document. The result is checked, but for names that stand twice: see toStored.
func toDocument(v any) (bsoncore.Document, error) {
	doc, err := encodeDocument(v)
	if err != nil {
		return nil, err
	}
	return doc, checkSpec(doc)
}

// toStored is toDocument for a document that is to be stored.
func toStored(v any) (bsoncore.Document, error) {
	doc, err := encodeStored(v)
	if err != nil {
		return nil, err
	}
	return doc, checkBSON(doc)
}

// encodeStored is encodeDocument for a document that is to be stored. There nil is a mistake, such as what a call returned that failed.
func encodeStored(v any) (bsoncore.Document, error) {
	raw, isRaw := v.(bson.Raw)
	r := reflect.ValueOf(v)
	if !r.IsValid() || isRaw && raw == nil || r.Kind() == reflect.Pointer && r.IsNil() {
		return nil, mongoerror.New(mongoerror.BadValue, "nil is no document to store")
	}
	return encodeDocument(v)
}

func encodeDocument(v any) (bsoncore.Document, error) {
	switch v := v.(type) {
	case nil:
		return emptyDocument(), nil
	case bson.Raw:
		if v == nil {
			return emptyDocument(), nil
		}
		return bsoncore.Document(v), nil
	case bsoncore.Document:
		return v, nil
	case bson.RawValue:
		return encodeDocument(bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
	case bsoncore.Value:
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.New(mongoerror.TypeMismatch, "expected an object, not a value of type %s", bson.Type(v.Type))
		}
		return v.Data, nil
	case string:
		return nil, mongoerror.New(mongoerror.TypeMismatch, "a string is no document: Extended JSON is passed as document.JSON")
	case JSON:
		if !opens(v, '{') {
			return nil, mongoerror.New(mongoerror.FailedToParse, "not a JSON document: it does not begin with {")
		}
		var raw bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(v), false, &raw); err != nil {
			return nil, mongoerror.New(mongoerror.FailedToParse, "not a JSON document: %v", err)
		}
		if more := behind(v); more != "" {
			return nil, mongoerror.New(mongoerror.FailedToParse, "not a JSON document: %.20q follows its end", more)
		}
		return bsoncore.Document(raw), nil
	}
	if r := reflect.ValueOf(v); (r.Kind() == reflect.Pointer || r.Kind() == reflect.Map) && r.IsNil() {
		return emptyDocument(), nil
	}
	doc, err := bson.Marshal(v)
	var misplaced bson.TransitionError
	if errors.As(err, &misplaced) { // it is a value that stands in documents
		return nil, mongoerror.New(mongoerror.BadValue, "a value of the type %T is no document", v)
	}
	if err != nil {
		return nil, mongoerror.New(mongoerror.BadValue, "cannot make a document of a value of the type %T: %v", v, err)
	}
	return bsoncore.Document(doc), nil
}

// opens reports whether a text begins with a bracket, behind white space.
func opens(text JSON, bracket byte) bool {
	s := strings.TrimLeft(string(text), " \t\r\n")
	return s != "" && s[0] == bracket
}

// behind returns what follows the first document or array in a text that was parsed, but for white space: the parser does not look there,
// and a filter with a bracket too many would be one without its second half.
func behind(text JSON) string {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return strings.Trim(string(text[i+1:]), " \t\r\n")
			}
		}
	}
	return ""
}

func emptyDocument() bsoncore.Document { return bsoncore.Document{5, 0, 0, 0, 0} }

// toOptional is toDocument, but nil stays nil.
func toOptional(v any) (bsoncore.Document, error) {
	if v == nil {
		return nil, nil
	}
	return toDocument(v)
}

// toValue returns the BSON of any value; nil is missing.
func toValue(v any) (bsoncore.Value, error) {
	switch v := v.(type) {
	case nil:
		return bsoncore.Value{}, nil
	case bsoncore.Value:
		return v, nil
	case bson.RawValue:
		return bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}, nil
	case JSON, bson.Raw:
		doc, err := toDocument(v)
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, err
	}
	t, data, err := bson.MarshalValue(v)
	if err != nil {
		return bsoncore.Value{}, mongoerror.New(mongoerror.BadValue, "cannot make a BSON value of a %T: %v", v, err)
	}
	if rest, err := checkValue(t, data, 0, false); err != nil || len(rest) > 0 {
		return bsoncore.Value{}, err
	}
	return bsoncore.Value{Type: bsoncore.Type(t), Data: data}, nil
}

// toPipeline returns the stages of a pipeline: a slice of documents, or a JSON array.
func toPipeline(v any) ([]bsoncore.Document, error) {
	if text, ok := v.(JSON); ok {
		if !opens(text, '[') {
			return nil, mongoerror.New(mongoerror.FailedToParse, "not a JSON array of stages: it does not begin with [")
		}
		var stages []bson.Raw
		wrapped := []byte(`{"p":` + string(text) + `}`)
		var holder struct {
			P []bson.Raw `bson:"p"`
		}
		if err := bson.UnmarshalExtJSON(wrapped, false, &holder); err != nil {
			return nil, mongoerror.New(mongoerror.FailedToParse, "not a JSON array of stages: %v", err)
		}
		if more := behind(text); more != "" {
			return nil, mongoerror.New(mongoerror.FailedToParse, "not a JSON array of stages: %.20q follows its end", more)
		}
		stages = holder.P
		v = stages
	}
	if v == nil {
		return nil, nil
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice || r.Type() == reflect.TypeFor[bson.D]() || r.Type() == reflect.TypeFor[bson.Raw]() {
		return nil, mongoerror.New(mongoerror.TypeMismatch, "a pipeline is a slice of stages, not a %T", v)
	}
	if array, ok := v.(bson.RawArray); ok {
		return arrayStages(bsoncore.Array(array))
	}
	if array, ok := v.(bsoncore.Array); ok {
		return arrayStages(array)
	}
	stages := make([]bsoncore.Document, r.Len())
	for i := range stages {
		var err error
		if stages[i], err = toDocument(r.Index(i).Interface()); err != nil {
			return nil, err
		}
	}
	return stages, nil
}

// CheckStages refuses an array in which something has not the shape of a pipeline's stage: a document of one field. What is no array it
// takes.
func CheckStages(v bsoncore.Value) error {
	list, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	stages, err := list.Values()
	if err != nil {
		return malformed("%v", err)
	}
	for _, stage := range stages {
		doc, ok := stage.DocumentOK()
		if !ok {
			return mongoerror.StageNotAnObject()
		}
		if elements, err := doc.Elements(); err != nil || len(elements) != 1 {
			return mongoerror.StageOfManyFields()
		}
	}
	return nil
}

func arrayStages(a bsoncore.Array) ([]bsoncore.Document, error) {
	values, err := a.Values()
	if err != nil {
		return nil, malformed("%v", err)
	}
	stages := make([]bsoncore.Document, len(values))
	for i, v := range values {
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.StageNotAnObject()
		}
		stages[i] = v.Document()
		if err := checkSpec(stages[i]); err != nil {
			return nil, err
		}
	}
	return stages, nil
}

// identify returns doc with _id as its first field: moved there, or made by newID where there is none.
func identify(doc bsoncore.Document, newID func() bson.ObjectID) (bsoncore.Document, bsoncore.Value, error) {
	first, err := doc.IndexErr(0)
	if err == nil && first.Key() == "_id" {
		id := first.Value()
		return doc, id, update.ValidateID(id)
	}
	id, err := doc.LookupErr("_id")
	if err != nil {
		fresh := newID()
		id = bsoncore.Value{Type: bsoncore.TypeObjectID, Data: fresh[:]}
	}
	if err := update.ValidateID(id); err != nil {
		return nil, id, err
	}
	out := make([]byte, 0, len(doc)+len(id.Data)+5)
	at, out := bsoncore.AppendDocumentStart(out)
	out = bsoncore.AppendValueElement(out, "_id", id)
	elements, err := doc.Elements()
	if err != nil {
		return nil, id, malformed("%v", err)
	}
	for _, e := range elements {
		if e.Key() != "_id" {
			out = append(out, e...)
		}
	}
	out, err = bsoncore.AppendDocumentEnd(out, at)
	if err != nil {
		return nil, id, malformed("%v", err)
	}
	return out, id, nil
}

// toDocuments returns the documents of a slice of whatever toDocument takes.
func toDocuments(v any) ([]document, error) {
	list, err := encodeDocuments(v)
	if err != nil {
		return nil, err
	}
	return list, checkAll(list)
}

// encodeDocuments is toDocuments without a look at the documents: they are still to be checked.
func encodeDocuments(v any) ([]document, error) {
	switch v := v.(type) {
	case []document:
		return v, nil
	case []bson.Raw:
		list := make([]document, len(v))
		for i := range v {
			list[i] = document(v[i])
		}
		return list, nil
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array || isDocument(v) { // a bson.D is a slice too, of what would be documents as well
		return nil, mongoerror.New(mongoerror.TypeMismatch, "documents to insert are a slice, not a %T", v)
	}
	list := make([]document, r.Len())
	for i := range list {
		var err error
		if list[i], err = encodeStored(r.Index(i).Interface()); err != nil {
			return nil, WriteErrors{{i, err}}
		}
	}
	return list, nil
}

// checkAll checks documents, many of them on all processors, and returns the error of the first that is refused.
func checkAll(list []document) error {
	n := max(1, min(runtime.GOMAXPROCS(0), len(list)/parallelBatch))
	failed := make([]error, n)
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { failed[i] = checkSome(list, len(list)*i/n, len(list)*(i+1)/n) })
	}
	failed[0] = checkSome(list, 0, len(list)/n)
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSome checks the documents between two places in a list.
func checkSome(list []document, from, to int) error {
	for i := from; i < to; i++ {
		if err := checkBSON(list[i]); err != nil {
			return WriteErrors{{i, err}}
		}
	}
	return nil
}

// marshal is bson.Marshal with an error that says what failed.
func marshal(v any) ([]byte, error) {
	b, err := bson.Marshal(v)
	if err != nil {
		return nil, mongoerror.New(mongoerror.InternalError, "encode a %T: %v", v, err)
	}
	return b, nil
}

// stampTimestamps replaces empty timestamps among the top-level fields, but for _id, by the present one, as MongoDB does.
func stampTimestamps(doc document, now func() uint64) document {
	// An empty one is the zero that ends its name and eight more.
	if bytes.IndexByte(doc, byte(bsoncore.TypeTimestamp)) < 0 || !bytes.Contains(doc, make([]byte, 9)) {
		return doc // as nearly every document: it does without a look at its elements
	}
	for at := 4; at < len(doc)-1; {
		e, rest, ok := bsoncore.ReadElement(doc[at:])
		if !ok {
			return doc
		}
		if v := e.Value(); v.Type == bsoncore.TypeTimestamp && e.Key() != "_id" && string(v.Data) == "\x00\x00\x00\x00\x00\x00\x00\x00" {
			fresh := append(document(nil), doc...)
			value := fresh[at+len(e)-8 : at+len(e)]
			binary.LittleEndian.PutUint64(value, now())
			doc = fresh
		}
		at = len(doc) - len(rest)
	}
	return doc
}

// isDocument reports whether a value is one that stands for a document, not for a list of them.
func isDocument(v any) bool {
	switch v.(type) {
	case bson.D, bson.Raw, bsoncore.Document:
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Map || r.Kind() == reflect.Struct || r.Kind() == reflect.Pointer
}
