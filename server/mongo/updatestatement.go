package mongo

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// parseUpdate reads one statement of an update command.
func (r *request) parseUpdate(s *document.Statement, i int, doc bsoncore.Document) error {
	var filter bson.Raw
	var update, constants bson.RawValue
	var err error
	for rest := doc[4 : len(doc)-1]; len(rest) > 0; {
		name, v, after, ok := cutElement(rest)
		if !ok {
			return document.NewError(document.FailedToParse, "update.updates.%d cannot be read", i)
		}
		rest = after
		if v.Type == bsoncore.TypeNull && string(name) != "u" {
			continue // as if it were not there
		}
		raw := bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}
		field := func() string { return "update.updates." + string(name) }
		switch string(name) {
		case "q":
			d, ok := v.DocumentOK()
			if !ok {
				return wrongType(field(), v, "object")
			}
			filter = bson.Raw(d)
		case "u":
			if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
				return document.NewError(document.FailedToParse, "Update argument must be either an object or an array")
			}
			if err := document.CheckStages(v); err != nil {
				return err
			}
			update = raw
		case "multi":
			if s.Options.Many, err = asFlag(field(), v); err != nil {
				return err
			}
		case "upsert":
			if s.Options.Upsert, err = asFlag(field(), v); err != nil {
				return err
			}
		case "arrayFilters":
			if err := checkArrayFilters(field(), v); err != nil {
				return err
			}
			s.Options.ArrayFilters = raw
		case "hint":
			if s.Options.Hint, err = hintOf(v); err != nil {
				return err
			}
		case "collation":
			if s.Options.Collation, err = collationOf(field(), v); err != nil {
				return err
			}
		case "c":
			if constants = raw; v.Type != bsoncore.TypeEmbeddedDocument {
				return wrongType(field(), v, "object")
			}
		case "sampleId", "upsertSupplied":
		default:
			return document.NewError(codeUnknownField, "BSON field '%s' is an unknown field.", field())
		}
	}
	if filter == nil {
		return missingField("update.updates.q")
	}
	if update.Type == 0 {
		return missingField("update.updates.u")
	}
	if constants.Type != 0 && update.Type != bson.TypeArray {
		r.refuse(i, document.NewError(document.Code(51198), "Constant values may only be specified for pipeline updates"))
		constants = bson.RawValue{}
	}
	s.Filter, s.Update = filter, update
	if constants.Type != 0 {
		s.Options.Let, err = withConstants(s.Options.Let, constants)
	}
	return err
}

// checkArrayFilters refuses what is not an array of documents, which is an error of the whole command.
func checkArrayFilters(field string, v bsoncore.Value) error {
	list, ok := v.ArrayOK()
	if !ok {
		return wrongType(field, v, "array")
	}
	values, err := list.Values()
	if err != nil {
		return document.NewError(document.FailedToParse, "%s: %v", field, err)
	}
	for i, filter := range values {
		if filter.Type != bsoncore.TypeEmbeddedDocument {
			return wrongType(fmt.Sprintf("%s.%d", field, i), filter, "object")
		}
	}
	return nil
}

// withConstants adds the constants of one statement to the variables of the command. They are values, not expressions.
func withConstants(let any, constants bson.RawValue) (bson.Raw, error) {
	b := bsoncore.NewDocumentBuilder()
	if given, ok := let.(bson.Raw); ok {
		elements, err := given.Elements()
		if err != nil {
			return nil, err
		}
		for _, e := range elements {
			b.AppendValue(e.Key(), coreValue(e.Value()))
		}
	}
	elements, err := bson.Raw(constants.Value).Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		literal := bsoncore.NewDocumentBuilder().AppendValue("$literal", coreValue(e.Value()))
		b.AppendDocument(e.Key(), literal.Build())
	}
	return bson.Raw(b.Build()), nil
}
