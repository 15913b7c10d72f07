package projection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/query"
)

// TestTranscripts applies projections as testdata/transcripts has them. Input is the document, then the specification, then (for
// find's positional operator) the filter, each on a line. The command "reads" shows what an index would have to have.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			lines := strings.Split(d.Input, "\n")
			spec := value(t, lines[1])
			var p *Projection
			var err error
			switch d.Cmd {
			case "project":
				p, err = ParseProject(spec.Data, nil)
			case "add":
				p, err = ParseAddFields(spec.Data, nil)
			case "unset":
				p, err = ParseUnset(spec)
			case "root":
				p, err = ParseReplaceRoot(spec, nil)
			default:
				o := new(Options)
				if len(lines) > 2 {
					if o.Filter, err = query.Parse(value(t, lines[2]).Data, nil); err != nil {
						return fmt.Sprintf("filter: %v\n", err)
					}
				}
				p, err = Parse(spec.Data, o)
			}
			if err != nil {
				return fmt.Sprintf("parse: %v\n", err)
			}
			if d.Cmd == "reads" {
				paths, whole := p.Fields()
				covered, id, simple := p.Simple()
				return fmt.Sprintf("fields %v whole %v; simple %v %v id %v\n", paths, whole, simple, covered, id)
			}
			variables := []expression.Variable{{Name: MetaVariable("textScore"), Value: value(t, "1.5")}}
			out, err := p.ApplyWith(nil, value(t, lines[0]).Data, variables)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			relaxed, err := bson.MarshalExtJSON(bson.Raw(out), false, false)
			if err != nil {
				return err.Error()
			}
			return string(relaxed) + "\n"
		})
	})
}
