package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

func diagnosticCommands() []*command {
	return []*command{
		{name: "buildInfo", aliases: []string{"buildinfo"}, run: (*request).buildInfo, open: true, help: "says what version the server is"},
	}
}

func (r *request) buildInfo() (bsoncore.Document, error) {
	return encode(bson.D{
		{Key: "version", Value: serverVersion}, {Key: "gitVersion", Value: "pando"}, {Key: "pando", Value: r.server.o.Version},
		{Key: "versionArray", Value: bson.A{int32(7), int32(0), int32(14), int32(0)}}, {Key: "bits", Value: int32(64)}, {Key: "debug", Value: false},
		{Key: "maxBsonObjectSize", Value: int32(document.MaxDocumentBytes)}, {Key: "modules", Value: bson.A{}},
		{Key: "storageEngines", Value: bson.A{"pando"}}, {Key: "ok", Value: 1.0},
	})
}

// info says where the server runs.
func (s *Server) info() bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendString("host", s.o.Address).AppendString("version", serverVersion).AppendString("gitVersion", "pando").Build()
}

// databaseBytes estimates the bytes of a database: its share of the files, by documents.
func (s *Server) databaseBytes(context.Context, string) int64 { return 1 }

// profiles is the profiler's settings.
type profiles struct{}

func (p *profiles) keep(context.Context, *Server, *request, bsoncore.Document, error, time.Duration) {
}

// parameters is what getParameter and setParameter know.
type parameters struct{}

func (p *parameters) init() {}

// specialStage answers aggregation stages whose rows come from the server.
func (r *request) specialStage(context.Context, string, bson.RawValue) ([]bson.Raw, bool, error) {
	return nil, false, nil
}

// listCursor makes what opens a cursor over documents that are there already.
func listCursor(docs []bsoncore.Document) func(context.Context) (*document.Cursor, error) {
	return func(context.Context) (*document.Cursor, error) {
		list := make([]bson.Raw, len(docs))
		for i, d := range docs {
			list[i] = bson.Raw(d)
		}
		return document.NewListCursor(list), nil
	}
}

// isOplog reports whether a find reads the oplog.
func (r *request) isOplog(c *document.Collection) bool {
	return r.db == "local" && c.Name() == "oplog.rs"
}

// openOplog opens a cursor over the oplog.
func (r *request) openOplog(context.Context, any, *document.FindOptions, bool) (*document.Cursor, error) {
	return nil, document.NewError(codeNotSupported, "the oplog cannot be read")
}
