package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// There is no cache of plans: each query is planned for what the data is now. So there is nothing to clear, and no filters of indexes
// that a cached plan would keep; programs that ask for either get MongoDB's answers. Setting a filter is refused: a hint in the query
// does what it is for.

func planCacheCommands() []*command {
	return []*command{
		{name: "planCacheClear", run: (*request).planCacheClear, anyField: true, help: "does nothing: plans are not kept"},
		{name: "planCacheListFilters", run: (*request).planCacheListFilters, anyField: true, help: "lists no filters of indexes"},
		{name: "planCacheClearFilters", run: (*request).planCacheClear, anyField: true, help: "does nothing: there are no filters of indexes"},
		{name: "planCacheSetFilter", run: (*request).notSupported, anyField: true, help: "is not supported: give queries a hint"},
	}
}

func (r *request) planCacheClear() (bsoncore.Document, error) {
	if err := r.onPlain(); err != nil {
		return nil, err
	}
	if v, given := r.args["query"]; given && v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return nil, document.NewError(document.BadValue, "required field query must be an object")
	}
	if !given(r, "query") && (given(r, "sort") || given(r, "projection") || given(r, "collation")) {
		return nil, document.NewError(document.BadValue, "sort, projection, or collation provided without query")
	}
	for _, field := range []string{"sort", "projection", "collation"} {
		if _, err := r.document(field); err != nil {
			return nil, err
		}
	}
	return ok(), nil
}

// given reports whether a command has a field, be it null.
func given(r *request, name string) bool {
	_, is := r.args[name]
	return is
}

// onPlain refuses commands that are not about a collection of documents.
func (r *request) onPlain() error {
	c, err := r.collection()
	if err != nil {
		return err
	}
	return r.onView(c)
}

func (r *request) planCacheListFilters() (bsoncore.Document, error) {
	if err := r.onPlain(); err != nil {
		return nil, err
	}
	return encode(bson.D{{Key: "filters", Value: bson.A{}}, {Key: "ok", Value: 1.0}})
}
