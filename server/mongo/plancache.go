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
	shape := []string{"query", "sort", "projection", "collation"}
	return []*command{
		{name: "planCacheClear", run: (*request).planCacheClear, fields: shape, help: "does nothing: plans are not kept"},
		{name: "planCacheListFilters", run: (*request).planCacheListFilters, help: "lists no filters of indexes"},
		{name: "planCacheClearFilters", run: (*request).planCacheClear, fields: shape, help: "does nothing: there are no filters of indexes"},
		{name: "planCacheSetFilter", run: (*request).notSupported, anyField: true, help: "is not supported: give queries a hint"},
	}
}

func (r *request) planCacheClear() (bsoncore.Document, error) {
	if _, err := r.collection(); err != nil {
		return nil, err
	}
	if !r.has("query") && (r.has("sort") || r.has("projection") || r.has("collation")) {
		return nil, document.NewError(document.BadValue, "sort, projection, or collation provided without query")
	}
	for _, field := range []string{"query", "sort", "projection", "collation"} {
		if _, err := r.document(field); err != nil {
			return nil, err
		}
	}
	return ok(), nil
}

func (r *request) planCacheListFilters() (bsoncore.Document, error) {
	if _, err := r.collection(); err != nil {
		return nil, err
	}
	return encode(bson.D{{Key: "filters", Value: bson.A{}}, {Key: "ok", Value: 1.0}})
}
