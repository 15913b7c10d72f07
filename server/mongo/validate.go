package mongo

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// validate reads every document of a collection and compares its indexes with them, and verifies everything that the storage holds if it is to
// be full.
func (r *request) validate() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	if r.onView(c) != nil {
		return nil, document.NewError(codeNotOnView, "Cannot validate a view")
	}
	if repair, given := r.args["repair"]; given && truth(repair) && !r.server.o.Standalone {
		return nil, document.NewError(codeInvalidOptions, "Running the validate command with { repair: true } can only be done in standalone mode.")
	}
	full, err := r.flag("full")
	if err != nil {
		return nil, err
	}
	if background, err := r.flag("background"); err != nil {
		return nil, err
	} else if background && full {
		return nil, document.NewError(codeInvalidOptions, "Running the validate command with both { background: true } and { full: true } is not supported.")
	}
	list, err := c.Indexes(r.ctx)
	if err != nil {
		return nil, err
	}
	found, err := c.Validate(r.ctx)
	if ended := r.ctx.Err(); ended != nil {
		return nil, errors.Join(err, ended) // which is not the collection's fault, and may have come behind its last look
	}
	faults := bson.A{}
	if err != nil {
		faults = append(faults, err.Error())
	}
	if full {
		report, err := r.server.store.DB().Check(r.ctx)
		if err != nil {
			return nil, err
		}
		if err := report.Err(); err != nil {
			faults = append(faults, err.Error())
		}
	}
	keys, details := bson.D{}, bson.D{}
	for _, x := range list {
		entries, valid := found.Documents, err == nil
		for _, i := range found.Indexes {
			if i.Name != x.Name {
				continue
			}
			if entries = i.Entries; i.Missing != 0 || i.Extra != 0 {
				valid = false
				faults = append(faults, fmt.Sprintf("index %s: %d entries are missing, %d are of no document", i.Name, i.Missing, i.Extra))
			}
		}
		keys = append(keys, bson.E{Key: x.Name, Value: document.Number(entries)})
		details = append(details, bson.E{Key: x.Name, Value: bson.D{{Key: "valid", Value: valid}}})
	}
	return encode(bson.D{
		{Key: "ns", Value: r.db + "." + c.Name()}, {Key: "nInvalidDocuments", Value: int32(0)}, {Key: "nNonCompliantDocuments", Value: int32(0)}, {Key: "nrecords", Value: document.Number(found.Documents)}, {Key: "nIndexes", Value: int32(len(list))},
		{Key: "keysPerIndex", Value: keys}, {Key: "indexDetails", Value: details}, {Key: "valid", Value: len(faults) == 0}, {Key: "repaired", Value: false},
		{Key: "warnings", Value: bson.A{}}, {Key: "errors", Value: faults}, {Key: "extraIndexEntries", Value: bson.A{}},
		{Key: "missingIndexEntries", Value: bson.A{}}, {Key: "corruptRecords", Value: bson.A{}}, {Key: "ok", Value: 1.0},
	})
}
