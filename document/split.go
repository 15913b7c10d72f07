package document

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// An event of a change stream may be larger than a document may be: it holds a document up to three times. A stream whose last stage
// is $changeStreamSplitLargeEvent tells such an event in fragments, each with some of its fields, the smallest first, and a number;
// the token of each is that of the event with the number, so that a reader can go on behind any of them.

const splitStage = "$changeStreamSplitLargeEvent"

// maxEventBytes is how large an event, or a fragment of one, may be.
const maxEventBytes = MaxDocumentBytes

// takeSplitStage removes the stage that splits, which has to be the last one, and reports whether it was there.
func takeSplitStage(stages []document) ([]document, bool, error) {
	for i, stage := range stages {
		e, err := stage.IndexErr(0)
		if err != nil || e.Key() != splitStage {
			continue
		}
		if spec, ok := e.Value().DocumentOK(); !ok || len(elementsOf(spec)) > 0 {
			return nil, false, mongoerror.New(mongoerror.Code(7182800), "%s spec should be an empty object", splitStage)
		}
		if i != len(stages)-1 {
			return nil, false, mongoerror.New(mongoerror.Code(7182802), "%s must be the last stage in the pipeline", splitStage)
		}
		return stages[:i], true, nil
	}
	return stages, false, nil
}

// fragmentsOf splits an event that is too large, as it came out of the stream's stages. at is its place.
func (st *stream) fragmentsOf(doc document, at token) ([]fragment, error) {
	if len(doc) <= maxEventBytes {
		return []fragment{{doc, at}}, nil
	}
	if !st.split {
		return nil, &Error{
			Code: mongoerror.BSONObjectTooLarge, Labels: []string{"NonResumableChangeStreamError"},
			Message: fmt.Sprintf("BSONObj size: %d is invalid. Size must be between 0 and %d(16MB)", len(doc), maxEventBytes),
		}
	}
	return splitEvent(doc, at)
}

// fragment is an event, or a part of one.
type fragment struct {
	doc document
	at  token
}

// fragmentOverhead is what a fragment needs besides fields: its _id, and splitEvent.
const fragmentOverhead = 256

// splitEvent splits an event into fragments.
func splitEvent(doc document, at token) ([]fragment, error) {
	fields := slices.DeleteFunc(elementsOf(doc), func(e bsoncore.Element) bool { return e.Key() == "_id" })
	slices.SortStableFunc(fields, func(a, b bsoncore.Element) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a.Key(), b.Key())
	})
	var parts [][]byte
	for _, e := range fields {
		if len(e) > maxEventBytes-fragmentOverhead {
			return nil, &Error{
				Code: mongoerror.Code(7182500), Labels: []string{"NonResumableChangeStreamError"},
				Message: fmt.Sprintf("Splitting change event failed: the field '%s' is too large", e.Key()),
			}
		}
		if last := len(parts) - 1; last >= 0 && len(parts[last])+len(e) <= maxEventBytes-fragmentOverhead {
			parts[last] = append(parts[last], e...)
		} else {
			parts = append(parts, slices.Clone(e))
		}
	}
	list := make([]fragment, len(parts))
	for i, part := range parts {
		at.fragment = uint32(i + 1)
		number := bsoncore.NewDocumentBuilder().AppendInt32("fragment", int32(i+1)).AppendInt32("of", int32(len(parts))).Build()
		start, dst := bsoncore.AppendDocumentStart(nil)
		dst = bsoncore.AppendDocumentElement(dst, "_id", at.document())
		dst = bsoncore.AppendDocumentElement(dst, "splitEvent", number)
		dst, err := bsoncore.AppendDocumentEnd(append(dst, part...), start)
		if err != nil {
			return nil, err
		}
		list[i] = fragment{dst, at}
	}
	return list, nil
}
