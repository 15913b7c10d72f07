package document

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/order"
)

// parseIndexes reads the specifications of new indexes, all of them before any is made.
func parseIndexes(specs []bson.Raw, c *collation.Collation) ([]*index.Definition, error) {
	defs := make([]*index.Definition, len(specs))
	for i, spec := range specs {
		if err := checkBSON(spec); err != nil {
			return nil, err
		}
		def, err := index.Parse(slices.Clone(document(spec)), c)
		if err == nil {
			err = def.CheckPrepared()
		}
		if err != nil {
			return nil, err
		}
		if def.Name == "_id_" && !isIDIndex(def) {
			return nil, mongoerror.New(mongoerror.BadValue, "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: %s", notation.Document(def.Keys))
		}
		defs[i] = def
	}
	return defs, nil
}

// parseIndexes reads those of a collection.
func (c *collection) parseIndexes(specs []bson.Raw) ([]*index.Definition, error) {
	defs, err := parseIndexes(specs, c.settings.Load().collation)
	if err != nil {
		return nil, err
	}
	for _, def := range defs {
		if err := c.checkSeriesIndex(def); err != nil {
			return nil, err
		}
		if def.TTL >= 0 && c.settings.Load().capped { // who follows it would lose the place
			return nil, mongoerror.New(mongoerror.CannotCreateIndex, "Cannot create TTL index on a capped collection")
		}
		if c.ownsID(def) {
			def.Name = "_id_" // whatever name was asked for
		}
	}
	return defs, nil
}

// checkTogether refuses indexes of one call of which one is in the way of another, or is the same once more: there is nothing to make then.
func checkTogether(defs []*index.Definition) error {
	for i, def := range defs {
		for _, before := range defs[:i] {
			same, err := compareIndexes(before, def)
			switch {
			case err != nil:
				return err
			case same:
				return mongoerror.New(mongoerror.IndexAlreadyExists, "Identical index already exists: %s", def.Name)
			}
		}
	}
	return nil
}

// missing returns the definitions of those indexes that are not there, and refuses what another index is in the way of, or another one of
// the same call.
func (c *collection) missing(list []*secondary, defs []*index.Definition) ([]*index.Definition, error) {
	var missing []*index.Definition
	for _, def := range defs {
		there, err := c.isThere(list, def)
		if err != nil {
			return nil, err
		}
		if there {
			continue
		}
		if missing = append(missing, def); 1+countListed(list)+len(missing) > maxIndexes { // one is that of _id
			return nil, mongoerror.New(mongoerror.CannotCreateIndex, "add index fails, too many indexes for %s key:%s", c.name.Load(), def.Keys)
		}
	}
	return missing, checkTogether(missing)
}

// isThere reports whether an equal index is there already, and fails where another one is in the way.
func (c *collection) isThere(list []*secondary, def *index.Definition) (bool, error) {
	if c.ownsID(def) {
		return true, nil
	} else if s := c.settings.Load().series; s.hasIndex() {
		if same, err := compareIndexes(s.order, def); same || err != nil {
			return same, err
		}
	}
	for _, byName := range []bool{true, false} { // whose name it is says first what is wrong
		for _, x := range list {
			if byName != (x.def.Name == def.Name) {
				continue
			}
			if same, err := compareIndexes(x.def, def); same || err != nil {
				return same, err
			}
		}
	}
	return false, nil
}

// ownsID reports whether a definition is that of the index of _id, and the collection one that always has it.
func (c *collection) ownsID(def *index.Definition) bool {
	return c.settings.Load().series == nil && isIDIndex(def)
}

// isIDIndex reports whether a definition is that of the index of _id, which is always there but in a time series.
func isIDIndex(def *index.Definition) bool {
	return len(def.Components) == 1 && def.Components[0].Path == "_id" && def.Components[0].Kind == index.Ascending
}

// KnownIndexFields returns a specification of an index without the fields that none has.
func KnownIndexFields(spec bson.Raw) (bson.Raw, error) {
	elements, err := document(spec).Elements()
	if err != nil {
		return nil, malformed("%v", err)
	}
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elements {
		if index.IsField(e.Key()) {
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return bson.Raw(b.Build()), nil
}

// sameSpec reports whether two parts of specifications mean the same: {a: 1.0}, as shells and old dumps have it, is {a: 1}.
func sameSpec(a, b document) bool {
	return len(a) == 0 && len(b) == 0 || len(a) > 0 && len(b) > 0 && order.CompareDocuments(a, b, nil) == 0
}

// compareIndexes reports whether two definitions are the same index, and fails when they are in each other's way.
func compareIndexes(old, new *index.Definition) (bool, error) {
	same := sameSpec(old.Keys, new.Keys) && sameSpec(old.WildcardProjection, new.WildcardProjection) && sameSpec(old.PartialSpec, new.PartialSpec) &&
		old.Collation.Equal(new.Collation) && old.Unique == new.Unique && old.Sparse == new.Sparse
	switch {
	case same && old.TTL == new.TTL && old.Prepared == new.Prepared && old.Name == new.Name:
		return true, nil
	case same && old.TTL == new.TTL && old.Prepared == new.Prepared:
		return false, mongoerror.New(mongoerror.IndexOptionsConflict, "Index already exists with a different name: %s", old.Name)
	case same:
		return false, mongoerror.New(mongoerror.IndexOptionsConflict, "An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s", new.Spec, old.Spec)
	case old.Name == new.Name:
		return false, mongoerror.New(mongoerror.IndexKeySpecsConflict, "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", new.Spec, old.Spec)
	}
	return false, nil
}
