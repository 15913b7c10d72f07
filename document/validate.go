package document

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// validate refuses a document that the collection's validator does not match. old is the document before, nil for a new one.
func (c *collection) validate(doc, old document) error {
	s := c.settings.Load()
	if s.validator == nil {
		return nil
	}
	ok, err := s.validator.Match(path.Document(doc))
	if ok || err != nil {
		return err
	}
	if s.moderate && old != nil {
		if ok, err := s.validator.Match(path.Document(old)); !ok || err != nil {
			return err
		}
	}
	if s.warn {
		c.store.log.Warn("document fails validation", "collection", c.name.Load().String(), "_id", doc.Lookup("_id").String())
		return nil
	}
	details := bsoncore.NewDocumentBuilder().AppendValue("failingDocumentId", doc.Lookup("_id")).
		AppendDocument("details", bsoncore.NewDocumentBuilder().AppendString("operatorName", operatorName(s.schema)).
			AppendDocument("specifiedAs", s.schema).AppendString("reason", "the document did not match").Build()).Build()
	return &Error{Code: mongoerror.DocumentValidationFailure, Message: "Document failed validation", Info: details}
}

// operatorName names the operator of a validator that errInfo tells about: the only one, or $and of several fields.
func operatorName(schema document) string {
	elements, err := schema.Elements()
	if err == nil && len(elements) == 1 && len(elements[0].Key()) > 0 && elements[0].Key()[0] == '$' {
		return elements[0].Key()
	}
	return "$and"
}

// Modify changes options of the collection, as MongoDB's collMod does: validator, validationLevel, validationAction,
// changeStreamPreAndPostImages, viewOn and pipeline of a view; index: {keyPattern or name, expireAfterSeconds, hidden}.
func (c *Collection) Modify(ctx context.Context, changes any) error {
	change, err := toDocument(changes)
	if err != nil {
		return err
	}
	s := c.store
	s.schema.Lock()
	defer s.schema.Unlock()
	if v := c.view(); v != nil {
		return s.modifyView(ctx, v, change)
	}
	x, err := c.use()
	if err != nil {
		return err
	}
	if x == nil {
		return notFound(c.ns)
	}
	rest := bsoncore.NewDocumentBuilder()
	elements, err := change.Elements()
	if err != nil {
		return malformed("%v", err)
	}
	options := false
	for _, e := range elements {
		if e.Key() == "index" {
			if err := x.modifyIndex(ctx, e.Value()); err != nil {
				return err
			}
			continue
		}
		switch e.Key() {
		case "validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages":
		default:
			return mongoerror.New(mongoerror.InvalidOptions, "collMod does not know the option '%s'", e.Key())
		}
		options = true
		rest.AppendValue(e.Key(), e.Value())
	}
	if !options && len(elements) > 0 {
		return nil
	}
	return x.modifySettings(ctx, rest.Build())
}

// modifySettings replaces some of the options. The caller holds Store.schema.
func (c *collection) modifySettings(ctx context.Context, change document) error {
	before := c.settings.Load()
	merged, err := mergeOptions(before.spec, change)
	if err != nil {
		return err
	}
	after, err := parseSettings(merged)
	if err != nil {
		return err
	}
	c.settings.Store(after)
	err = c.store.write(ctx, func(w *writer) error {
		command := bsoncore.NewDocumentBuilder().AppendString("collMod", c.name.Load().String()).AppendDocument("options", change).Build()
		return errors.Join(w.noteCommand(command), w.putEntry(c))
	})
	if err != nil {
		c.settings.Store(before)
		return fmt.Errorf("change the options of %s: %w", c.name.Load(), err)
	}
	return nil
}

// mergeOptions returns the options with those in change replaced.
func mergeOptions(spec, change document) (document, error) {
	var all, some bson.D
	if err := errors.Join(bson.Unmarshal(spec, &all), bson.Unmarshal(change, &some)); err != nil {
		return nil, malformed("%v", err)
	}
	for _, e := range some {
		found := false
		for i := range all {
			if all[i].Key == e.Key {
				all[i].Value, found = e.Value, true
			}
		}
		if !found {
			all = append(all, e)
		}
	}
	return toDocument(all)
}
