package execute_test

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// indexSpec makes the specification of an index of any kind.
func (f *forced) indexSpec() bson.D {
	key := bson.D{}
	switch f.rnd.IntN(15) {
	case 12: // hashed, with others around it
		key = pick(f.rnd, bson.D{{Key: "c", Value: "hashed"}, {Key: "u", Value: -1}}, bson.D{{Key: "u", Value: 1}, {Key: "c", Value: "hashed"}},
			bson.D{{Key: "a", Value: 1}, {Key: "c", Value: "hashed"}, {Key: "m.b", Value: -1}})
	case 13: // a wildcard, with others around it
		key = pick(f.rnd, bson.D{{Key: "c", Value: 1}, {Key: "m.$**", Value: 1}}, bson.D{{Key: "m.$**", Value: -1}, {Key: "c", Value: -1}},
			bson.D{{Key: "b", Value: -1}, {Key: "a.$**", Value: 1}, {Key: "u", Value: 1}})
	case 14:
		return f.projected()
	case 0:
		key = bson.D{{Key: "c", Value: "hashed"}}
	case 1:
		key = bson.D{{Key: pick(f.rnd, "$**", "m.$**", "a.$**"), Value: 1}}
	case 3:
		key = bson.D{{Key: "g", Value: "2dsphere"}}
		if f.rnd.IntN(2) == 0 {
			key = append(key, bson.E{Key: f.path(), Value: 1})
		} else if f.rnd.IntN(2) == 0 {
			key = append(bson.D{{Key: "c", Value: -1}}, key...)
		}
		return bson.D{{Key: "key", Value: key}}
	case 2:
		key = bson.D{{Key: "u", Value: pick(f.rnd, 1, -1)}}
		return bson.D{{Key: "key", Value: key}, {Key: "unique", Value: true}}
	default:
		for range 1 + f.rnd.IntN(3) {
			path := f.path()
			if slices.ContainsFunc(key, func(e bson.E) bool { return e.Key == path }) || path == "_id" {
				continue
			}
			key = append(key, bson.E{Key: path, Value: pick(f.rnd, 1, -1)})
		}
		if len(key) == 0 {
			key = bson.D{{Key: "a", Value: 1}}
		}
	}
	spec := bson.D{{Key: "key", Value: key}}
	special := slices.ContainsFunc(key, func(e bson.E) bool { return e.Value == "hashed" || strings.HasSuffix(e.Key, "$**") })
	switch f.rnd.IntN(8) {
	case 0:
		if !special {
			spec = append(spec, bson.E{Key: "sparse", Value: true})
		}
	case 1:
		partial := pick(f.rnd,
			bson.D{{Key: "c", Value: bson.D{{Key: "$gt", Value: 1}}}},
			bson.D{{Key: "a", Value: bson.D{{Key: "$exists", Value: true}}}},
			bson.D{{Key: "m", Value: bson.D{{Key: "$lte", Value: 3}}}, {Key: "c", Value: bson.D{{Key: "$exists", Value: true}}}})
		spec = append(spec, bson.E{Key: "partialFilterExpression", Value: partial})
	case 2:
		if !special {
			spec = append(spec, bson.E{Key: "collation", Value: bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}}})
		}
	}
	return spec
}

// projected makes an index of a wildcard that takes in, or leaves out, what is said beside it.
func (f *forced) projected() bson.D {
	key, projection := bson.D{{Key: "$**", Value: 1}}, pick(f.rnd, bson.D{{Key: "m", Value: 1}, {Key: "c", Value: 1}}, bson.D{{Key: "a", Value: 0}, {Key: "g", Value: 0}},
		bson.D{{Key: "m.b", Value: 1}}, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 1}}, bson.D{{Key: "m", Value: bson.D{{Key: "b", Value: true}}}},
		bson.D{{Key: "m", Value: bson.D{{Key: "c", Value: 0}}}, {Key: "a", Value: 0}, {Key: "g", Value: 0}, {Key: "_id", Value: 1}}, bson.D{{Key: "c", Value: 0.5}})
	if f.rnd.IntN(2) == 0 {
		key = bson.D{{Key: "b", Value: 1}, {Key: "$**", Value: 1}, {Key: "u", Value: -1}}
		projection = pick(f.rnd, bson.D{{Key: "m", Value: 1}, {Key: "a.b", Value: 1}}, bson.D{{Key: "b", Value: 0}, {Key: "u", Value: 0}, {Key: "m.c", Value: 0}},
			bson.D{{Key: "m", Value: bson.D{{Key: "c", Value: 1.5}}}})
	}
	return bson.D{{Key: "key", Value: key}, {Key: "wildcardProjection", Value: projection}}
}
