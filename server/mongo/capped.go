package mongo

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// commitQuorum returns how many members of the replica set are to have built an index before it is used, as createIndexes repeats it.
// One is all that there are. It is nothing where there is no set.
func (r *request) commitQuorum() (none bsoncore.Value, err error) {
	if !r.has("commitQuorum") {
		if r.server.o.Standalone {
			return none, nil
		}
		return textValue("votingMembers"), nil
	}
	if r.server.o.Standalone {
		return none, document.NewError(document.BadValue, "Standalones do not support commitQuorum")
	}
	v := r.args["commitQuorum"]
	if mode, isText := v.StringValueOK(); isText {
		if mode != "majority" && mode != "votingMembers" {
			return none, document.NewError(codeUnknownConcern, "No write concern mode named '%s' found in replica set configuration", mode)
		}
		return v, nil
	}
	if !v.IsNumber() {
		return none, wrongType("createIndexes.commitQuorum", v, "long")
	}
	n, isInt := asInt64(v)
	switch {
	case !isInt, n < 0, n > 50:
		return none, document.NewError(document.FailedToParse, "commitQuorum has to be a non-negative number and not greater than 50")
	case n > 1:
		return none, document.NewError(document.Code(278), "Not enough data-bearing nodes to satisfy commit quorum")
	}
	return bsoncore.Value{Type: bsoncore.TypeInt32, Data: bsoncore.AppendInt32(nil, int32(n))}, nil
}

func textValue(s string) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
}

// convertToCapped makes a collection capped.
func (r *request) convertToCapped() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	size, err := r.cappedSize()
	if err != nil {
		return nil, err
	}
	if err := c.MakeCapped(r.ctx, size); err != nil {
		return nil, err
	}
	return ok(), nil
}

// cloneCollectionAsCapped copies a collection into a capped one.
func (r *request) cloneCollectionAsCapped() (bsoncore.Document, error) {
	for _, field := range []string{r.name, "toCollection"} {
		if v := r.args[field]; v.Type != bsoncore.TypeString {
			return nil, document.NewError(document.TypeMismatch, "'%s' must be of type String", field)
		}
	}
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	to, err := r.text("toCollection")
	if err != nil {
		return nil, err
	}
	size, err := r.cappedSize()
	if err != nil {
		return nil, err
	}
	if err := c.CopyCapped(r.ctx, to, size); err != nil {
		return nil, err
	}
	return ok(), nil
}

// cappedSize returns the size of a capped collection that is to be made. MongoDB has no code for one that is missing.
func (r *request) cappedSize() (int64, error) {
	n, isNumber := asInt64(r.args["size"])
	switch {
	case isNumber && n < 0:
		return 0, document.NewError(document.BadValue, "size has to be >= 0")
	case !isNumber, n == 0, n == math.MaxInt64:
		return 0, document.NewError(document.BadValue, "invalid command spec")
	}
	return n, nil
}
