package update

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/query"
)

// TestTranscripts applies updates as testdata/transcripts has them. Input is the document, then the update, each on a line;
// for upsert it is the filter. Arguments: filters=<JSON of an array filter>, position=<number>.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			first, second, _ := strings.Cut(d.Input, "\n")
			o := &Options{Now: goldenNow, Timestamp: goldenTimestamp}
			position := -1
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "filter":
					o.ArrayFilters = append(o.ArrayFilters, value(t, arg.Vals[0]).Document())
				case "position":
					position, _ = strconv.Atoi(arg.Vals[0])
				}
			}
			u, err := Parse(value(t, second), o)
			if err != nil {
				return fmt.Sprintf("parse: %v\n", err)
			}
			if d.Cmd == "upsert" {
				f, err := query.Parse(value(t, first).Document(), nil)
				if err != nil {
					return fmt.Sprintf("filter: %v\n", err)
				}
				doc, err := u.Upsert(f, func() bsoncore.Value { return value(t, `"new"`) })
				if err != nil {
					return fmt.Sprintf("error: %v\n", err)
				}
				return notation.Document(doc) + "\n"
			}
			out, changed, err := u.Apply(nil, value(t, first).Document(), false, position)
			switch {
			case err != nil:
				return fmt.Sprintf("error: %v\n", err)
			case !changed:
				return "unchanged\n"
			}
			return notation.Document(out) + "\n"
		})
	})
}
