package main

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

func (m methodCall) insertOne() error {
	doc, err := m.args.required(0)
	if err != nil {
		return err
	}
	id, err := m.c.Insert(m.ctx, doc)
	if err != nil {
		return err
	}
	return m.printer.print(bson.D{{Key: "insertedId", Value: id}})
}

func (m methodCall) insertMany() error {
	docs, err := m.args.documents(0)
	if err != nil {
		return err
	}
	o := &document.InsertOptions{Ordered: true}
	given, err := m.options(1)
	if err != nil {
		return err
	}
	for name, v := range given {
		ordered, ok := v.BooleanOK()
		if name != "ordered" || !ok {
			return fmt.Errorf("insertMany has no option %s", name)
		}
		o.Ordered, o.Unordered = ordered, !ordered
	}
	n, err := m.c.InsertMany(m.ctx, docs, o)
	if printing := m.printer.print(bson.D{{Key: "insertedCount", Value: n}}); err == nil {
		err = printing
	}
	return err
}

// options returns the members of an argument that is a document, or not given.
func (m methodCall) options(i int) (map[string]bson.RawValue, error) {
	if m.args.document(i) == nil {
		return nil, nil
	}
	v, err := m.args.value(i)
	if err != nil {
		return nil, err
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, m.args.wrong(i, "a document of options")
	}
	elements, err := doc.Elements()
	members := map[string]bson.RawValue{}
	for _, e := range elements {
		members[e.Key()] = e.Value()
	}
	return members, err
}

// What options of a statement are.
const (
	aBoolean   = "true or false"
	aDocument  = "a document"
	anIndex    = "the name of an index, or its keys"
	someFilter = "an array of documents"
	aSide      = `"before" or "after"`
)

// isOption reports whether a value is what an option is to be.
func isOption(v bson.RawValue, want string) bool {
	ok := false
	switch want {
	case aBoolean:
		_, ok = v.BooleanOK()
	case aDocument:
		_, ok = v.DocumentOK()
	case anIndex:
		ok = hintOf(v) != nil
	case someFilter:
		_, ok = v.ArrayOK()
	case aSide:
		side, _ := v.StringValueOK()
		ok = side == "before" || side == "after"
	}
	return ok
}

// updateOptions reads the options of an update into o, and those of findOneAnd... into and. One that is null is not given; of any other
// value that an option cannot have nobody could say what is meant.
func (m methodCall) updateOptions(i int, o *document.UpdateOptions, and *document.ModifyOptions) error {
	known := map[string]string{"upsert": aBoolean, "sort": aDocument, "hint": anIndex, "collation": aDocument, "let": aDocument,
		"bypassDocumentValidation": aBoolean, "arrayFilters": someFilter}
	if and == nil {
		and = new(document.ModifyOptions)
	} else {
		known["projection"], known["returnDocument"], known["new"], known["returnNewDocument"] = aDocument, aSide, aBoolean, aBoolean
	}
	given, err := m.options(i)
	if err != nil {
		return err
	}
	sides := 0 // options that say which document is returned
	for name, v := range given {
		want, ok := known[name]
		switch {
		case !ok:
			return fmt.Errorf("%s has no option %s", m.args.name, name)
		case v.Type == bson.TypeNull || v.Type == bson.TypeUndefined:
			continue
		case !isOption(v, want):
			return fmt.Errorf("%s: the option %s is to be %s", m.args.name, name, want)
		}
		doc, _ := v.DocumentOK()
		yes, _ := v.BooleanOK()
		switch name {
		case "upsert":
			o.Upsert = yes
		case "sort":
			o.Sort = doc
		case "hint":
			o.Hint = hintOf(v)
		case "collation":
			o.Collation = doc
		case "let":
			o.Let = doc
		case "bypassDocumentValidation":
			o.SkipValidation = yes
		case "arrayFilters":
			if o.ArrayFilters, err = (arguments{m.args.name, []string{relaxedCanonical(v)}}).documents(0); err != nil {
				return err
			}
		case "projection":
			and.Projection = doc
		case "returnDocument":
			side, _ := v.StringValueOK()
			and.New = side == "after"
			sides++
		case "new", "returnNewDocument":
			and.New = yes
			sides++
		}
	}
	if sides > 1 {
		return fmt.Errorf("%s: of the options returnDocument, returnNewDocument and new one is to be given", m.args.name)
	}
	return nil
}

// relaxedCanonical returns a value as canonical Extended JSON.
func relaxedCanonical(v bson.RawValue) string {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
	if err != nil {
		return "null"
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}")
}

// change returns the update of an argument: a document or, where documents are not replaced, a pipeline.
func (m methodCall) change(i int) (any, error) {
	if m.args.name != "replaceOne" && i < len(m.args.values) && strings.HasPrefix(m.args.values[i], "[") {
		return m.args.documents(i)
	}
	return m.args.required(i)
}

func (m methodCall) update() error {
	filter, err := m.args.required(0) // as in remove
	if err != nil {
		return err
	}
	change, err := m.change(1)
	if err != nil {
		return err
	}
	o := &document.UpdateOptions{Many: m.args.name == "updateMany"}
	if err := m.updateOptions(2, o, nil); err != nil {
		return err
	}
	run := m.c.Update
	if m.args.name == "replaceOne" {
		run = m.c.Replace
	}
	result, err := run(m.ctx, filter, change, o)
	if err != nil {
		return err
	}
	out := bson.D{{Key: "matchedCount", Value: result.Matched}, {Key: "modifiedCount", Value: result.Modified}}
	if result.UpsertedID.Type != 0 {
		out = append(out, bson.E{Key: "upsertedId", Value: result.UpsertedID})
	}
	return m.printer.print(out)
}

func (m methodCall) remove() error {
	filter, err := m.args.required(0) // all documents are {}: nobody deletes them by leaving something out
	if err != nil {
		return err
	}
	n, err := m.c.Delete(m.ctx, filter, &document.DeleteOptions{Many: m.args.name == "deleteMany"})
	if err != nil {
		return err
	}
	return m.printer.print(bson.D{{Key: "deletedCount", Value: n}})
}

// findAnd is findOneAndUpdate, findOneAndReplace and findOneAndDelete.
func (m methodCall) findAnd() error {
	and := &document.ModifyOptions{Remove: m.args.name == "findOneAndDelete"}
	filter, err := m.args.required(0) // as in remove
	if err != nil {
		return err
	}
	var change any
	next := 1
	if !and.Remove {
		if change, err = m.change(1); err != nil {
			return err
		}
		if err := m.checkChange(1); err != nil {
			return err
		}
		next = 2
	}
	var o document.UpdateOptions
	if err := m.updateOptions(next, &o, and); err != nil {
		return err
	}
	and.Sort, and.Upsert, and.ArrayFilters, and.SkipValidation = o.Sort, o.Upsert, o.ArrayFilters, o.SkipValidation
	and.Hint, and.Collation, and.Let = o.Hint, o.Collation, o.Let
	doc, _, err := m.c.FindAndModify(m.ctx, filter, change, and)
	return m.printOne(doc, err)
}

// checkChange refuses a document without operators where one is to be changed, which would be replaced by it, and the other way round.
func (m methodCall) checkChange(i int) error {
	v, err := m.args.value(i)
	if err != nil {
		return err
	}
	operators := true // of a pipeline
	if doc, ok := v.DocumentOK(); ok {
		elements, err := doc.Elements()
		if err != nil {
			return err
		}
		operators = len(elements) > 0 && strings.HasPrefix(elements[0].Key(), "$")
	}
	switch {
	case m.args.name == "findOneAndUpdate" && !operators:
		return m.args.wrong(i, "a document of operators such as $set: findOneAndReplace replaces documents")
	case m.args.name == "findOneAndReplace" && operators:
		return m.args.wrong(i, "a document without operators: findOneAndUpdate has them")
	}
	return nil
}

func (m methodCall) createIndex() error {
	keys, err := m.args.value(0)
	if err != nil {
		return err
	}
	pattern, ok := keys.DocumentOK()
	if !ok {
		return m.args.wrong(0, "a document of fields with 1 or -1")
	}
	name, err := indexNameOf(pattern)
	if err != nil {
		return err
	}
	spec := bson.D{{Key: "key", Value: pattern}, {Key: "name", Value: name}}
	given, err := m.options(1)
	if err != nil {
		return err
	}
	for option, v := range given {
		if option == "name" {
			spec[1].Value = v
			continue
		}
		spec = append(spec, bson.E{Key: option, Value: v})
	}
	raw, err := bson.Marshal(spec)
	if err != nil {
		return err
	}
	bar := m.printer.a.counter("indexing")
	defer bar.end()
	names, err := m.c.CreateIndexes(m.ctx, []bson.Raw{raw}, bar.of)
	if err != nil {
		return err
	}
	bar.end()
	return m.printer.a.print(names[0], "%s\n", plain(names[0]))
}

func (m methodCall) getIndexes() error {
	list, err := m.c.Indexes(m.ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		if err := m.printer.print(i.Spec); err != nil {
			return err
		}
	}
	return nil
}

func (m methodCall) dropIndex() error {
	which, err := m.args.hint(0)
	if err != nil {
		return err
	}
	return m.c.DropIndex(m.ctx, which)
}
