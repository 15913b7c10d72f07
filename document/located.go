package document

import (
	"context"
	"errors"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Located implements aggregate.Environment: it finds the field that $geoNear searches when it names none.
func (e *environment) Located(ctx context.Context, database, collection string) (string, error) {
	c := e.store.Database(database).Lookup(collection)
	list, err := c.Indexes(ctx)
	switch {
	case errors.Is(err, NamespaceNotFound):
		return "", mongoerror.New(mongoerror.NamespaceNotFound, "$geoNear requires a geo index to run, but %s does not exist", c.ns)
	case err != nil:
		return "", err
	}
	field := ""
	for _, i := range list {
		key, err := document(i.Spec).LookupErr("key")
		if err != nil {
			return "", err
		}
		for _, e := range elementsOf(key.Document()) {
			switch kind, _ := e.Value().StringValueOK(); {
			case kind != "2dsphere":
			case field != "":
				return "", mongoerror.New(mongoerror.IndexNotFound, "There is more than one 2dsphere index on %s; unsure which to use for $geoNear", c.ns)
			default:
				field = e.Key()
			}
		}
	}
	if field == "" {
		return "", mongoerror.New(mongoerror.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
	}
	return field, nil
}
