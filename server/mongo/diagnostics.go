package mongo

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/offheap"
)

func diagnosticCommands() []*command {
	return []*command{
		{name: "buildInfo", aliases: []string{"buildinfo"}, run: (*request).buildInfo, anyField: true, open: true, help: "says what version the server is"},
		{name: "hostInfo", run: (*request).hostInfo, help: "says what the server runs on"},
		{name: "serverStatus", run: (*request).serverStatus, anyField: true, help: "says what the server has counted"},
		{name: "dbStats", aliases: []string{"dbstats"}, run: (*request).dbStats, anyField: true, help: "says how large a database is"},
		{name: "collStats", aliases: []string{"collstats"}, run: (*request).collStats, anyField: true, help: "says how large a collection is"},
		{name: "dataSize", run: (*request).dataSize, anyField: true, help: "says how large a collection is"},
		{name: "validate", run: (*request).validate, anyField: true, help: "checks a collection against its indexes"},
		{name: "getLog", run: (*request).getLog, admin: true, help: "returns recent messages"},
		{name: "getCmdLineOpts", run: (*request).getCmdLineOpts, admin: true, help: "says how the server was started"},
		{name: "listCommands", run: (*request).listCommands, anyField: true, help: "lists the commands"},
		{name: "whatsmyuri", run: (*request).whatsmyuri, anyField: true, open: true, help: "says where the client's connection comes from"},
		{name: "top", run: (*request).top, anyField: true, admin: true, help: "says how much each collection is used"},
		{name: "currentOp", run: (*request).currentOp, anyField: true, admin: true, help: "lists the commands that run"},
		{name: "profile", run: (*request).setProfile, anyField: true, help: "turns the profiler on or off"},
		{name: "dbHash", aliases: []string{"dbhash"}, run: (*request).dbHash, anyField: true, help: "hashes the collections of a database"},
		{name: "compact", run: (*request).compact, anyField: true, help: "makes the files as small as they get"},
		{name: "reIndex", run: (*request).reIndex, help: "makes the indexes of a collection anew"},
		{name: "fsync", run: (*request).fsync, anyField: true, admin: true, help: "settles everything on stable storage, with a checkpoint"},
		{name: "connPoolStats", run: connPoolStats, anyField: true, help: "says that there are no connections to other servers"},
		{name: "getLastError", aliases: []string{"getlasterror"}, run: func(r *request) (bsoncore.Document, error) {
			return nil, document.NewError(document.Code(5739000), "getLastError command is not supported")
		}, anyField: true, help: "is gone since MongoDB 5.1"},
		{name: "features", run: func(*request) (bsoncore.Document, error) {
			return encode(bson.D{{Key: "js", Value: false}, {Key: "oidMachine", Value: 0}, {Key: "ok", Value: 1.0}})
		}, help: "says that there is no JavaScript"},
	}
}

func (r *request) buildInfo() (bsoncore.Document, error) {
	return encode(bson.D{
		{Key: "version", Value: serverVersion}, {Key: "gitVersion", Value: "pando"}, {Key: "modules", Value: bson.A{}}, {Key: "pando", Value: r.server.o.Version},
		{Key: "allocator", Value: "go"}, {Key: "javascriptEngine", Value: "none"}, {Key: "sysInfo", Value: "deprecated"},
		{Key: "versionArray", Value: bson.A{int32(7), int32(0), int32(14), int32(0)}}, {Key: "openssl", Value: bson.D{{Key: "running", Value: "Go crypto/tls"}}},
		{Key: "buildEnvironment", Value: bson.D{{Key: "target_arch", Value: runtime.GOARCH}, {Key: "target_os", Value: runtime.GOOS}}},
		{Key: "bits", Value: int32(64)}, {Key: "debug", Value: false}, {Key: "maxBsonObjectSize", Value: int32(document.MaxDocumentBytes)},
		{Key: "storageEngines", Value: bson.A{"pando"}}, {Key: "ok", Value: 1.0},
	})
}

// info says where the server runs.
func (s *Server) info() bsoncore.Document {
	host, port, found := strings.Cut(s.o.Address, ":")
	if !found {
		port = "0"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		number = 0
	}
	return bsoncore.NewDocumentBuilder().AppendString("host", host).AppendInt32("port", int32(number)).AppendString("version", serverVersion).
		AppendString("gitVersion", "pando").Build()
}

func (r *request) hostInfo() (bsoncore.Document, error) {
	memory, limit := offheap.PhysicalMemory()>>20, offheap.AvailableMemory()>>20
	return encode(bson.D{
		{Key: "system", Value: bson.D{
			{Key: "currentTime", Value: r.server.clock.Now()}, {Key: "hostname", Value: r.server.o.Address}, {Key: "cpuAddrSize", Value: int32(64)},
			{Key: "memSizeMB", Value: memory}, {Key: "memLimitMB", Value: limit}, {Key: "numCores", Value: int32(runtime.NumCPU())}, {Key: "cpuArch", Value: runtime.GOARCH}, {Key: "numaEnabled", Value: false},
		}},
		{Key: "os", Value: bson.D{{Key: "type", Value: runtime.GOOS}, {Key: "name", Value: runtime.GOOS}, {Key: "version", Value: ""}}},
		{Key: "extra", Value: bson.D{}}, {Key: "ok", Value: 1.0},
	})
}

// databaseSizes is the shares of the files that databases take, estimated by their documents.
func (r *request) databaseSizes() (map[string]int64, error) {
	sizes := map[string]int64{}
	names, err := r.server.store.Databases(r.ctx)
	if err != nil {
		return nil, err
	}
	all := int64(0)
	for _, name := range names {
		list, err := r.server.store.Database(name).Collections(r.ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			documents := int64(1)
			if st, err := r.server.store.Database(name).Lookup(c.Name).Stats(r.ctx); err == nil { // else it is damaged, or was dropped
				documents += st.Documents
			}
			all += documents
			sizes[name] += documents
		}
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	m := r.server.store.DB().Metrics()
	total := m.LiveBytes + m.MemtableBytes
	for name, mine := range sizes {
		sizes[name] = max(1, int64(float64(total)*float64(mine)/float64(all)))
	}
	return sizes, nil
}

// scale is by what sizes are divided.
func (r *request) scale() (int64, error) {
	n, err := r.number("scale")
	if err != nil {
		return 0, err
	}
	if r.has("scale") && n < 1 {
		return 0, document.NewError(document.Code(51024), "BSON field 'scale' value must be >= 1, actual value '%d'", n)
	}
	return max(n, 1), nil
}

func (r *request) dbStats() (bsoncore.Document, error) {
	scale, err := r.scale()
	if err != nil {
		return nil, err
	}
	list, err := r.server.store.Database(r.db).Collections(r.ctx)
	if err != nil {
		return nil, err
	}
	var collections, views, indexes, objects, data, stored, indexed int64
	for _, c := range list {
		if c.View {
			views++
			continue
		}
		z, err := r.lookup(c.Name).Sizes(r.ctx)
		if err != nil {
			return nil, err
		}
		collections++
		indexes += int64(len(z.Indexes))
		objects += z.Documents
		data += z.DataBytes
		stored += z.StoredBytes
		for _, x := range z.Indexes {
			indexed += x.Bytes
		}
	}
	in := func(n int64) float64 { return float64(n / scale) }
	return encode(bson.D{
		{Key: "db", Value: r.db}, {Key: "collections", Value: document.Number(collections)}, {Key: "views", Value: document.Number(views)},
		{Key: "objects", Value: document.Number(objects)}, {Key: "avgObjSize", Value: float64(data) / float64(max(objects, 1))},
		{Key: "dataSize", Value: in(data)}, {Key: "storageSize", Value: in(stored)}, {Key: "indexes", Value: document.Number(indexes)},
		{Key: "indexSize", Value: in(indexed)}, {Key: "totalSize", Value: in(stored + indexed)}, {Key: "scaleFactor", Value: float64(scale)},
		{Key: "ok", Value: 1.0},
	})
}

func (r *request) collStats() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	scale, err := r.scale()
	if err != nil {
		return nil, err
	}
	stats, err := c.StorageStats(r.ctx, scale)
	if err != nil {
		return nil, err
	}
	return encode(append(append(bson.D{{Key: "ns", Value: r.db + "." + c.Name()}}, stats...), bson.E{Key: "ok", Value: 1.0}))
}

func (r *request) dataSize() (bsoncore.Document, error) {
	name, isText := r.target.StringValueOK()
	db, coll, _ := strings.Cut(name, ".")
	_, min := r.args["min"]
	_, max := r.args["max"]
	switch {
	case !isText:
		return nil, r.nameless()
	case db == "" || coll == "":
		return nil, document.NewError(codeInvalidNamespace, "Invalid namespace specified '%s'", name)
	case min != max:
		return nil, document.NewError(document.BadValue, "min and max must be set together")
	}
	found, err := r.located(db, func(x document.CollectionInfo) bool { return x.Name == coll })
	if err == nil && found.View {
		return nil, document.NewError(codeNotOnView, "Namespace %s is a view, not a collection", name)
	}
	z, err := r.server.store.Database(db).Lookup(coll).Sizes(r.ctx)
	if err != nil {
		return nil, err
	}
	return encode(bson.D{
		{Key: "estimate", Value: true}, {Key: "size", Value: document.Number(z.DataBytes)}, {Key: "numObjects", Value: document.Number(z.Documents)},
		{Key: "millis", Value: int32(0)}, {Key: "ok", Value: 1.0},
	})
}

func (r *request) getLog() (bsoncore.Document, error) {
	which, ok := r.target.StringValueOK()
	if !ok {
		return nil, document.NewError(document.TypeMismatch, "Argument to getLog must be of type String; found %s of type %s", r.target, document.TypeName(bson.Type(r.target.Type)))
	}
	switch which {
	case "*":
		return encode(bson.D{{Key: "names", Value: bson.A{"global", "startupWarnings"}}, {Key: "ok", Value: 1.0}})
	case "global", "startupWarnings":
		return encode(bson.D{{Key: "totalLinesWritten", Value: 0}, {Key: "log", Value: bson.A{}}, {Key: "ok", Value: 1.0}})
	}
	return nil, document.NewError(document.Code(96), "No log named '%s'", which)
}

func (r *request) getCmdLineOpts() (bsoncore.Document, error) {
	parsed := bson.D{}
	if !r.server.o.Standalone {
		parsed = append(parsed, bson.E{Key: "replication", Value: bson.D{{Key: "replSet", Value: r.server.o.SetName}}})
	}
	if r.server.o.Auth {
		parsed = append(parsed, bson.E{Key: "security", Value: bson.D{{Key: "authorization", Value: "enabled"}}})
	}
	if r.server.o.TestCommands {
		parsed = append(parsed, bson.E{Key: "setParameter", Value: bson.D{{Key: "enableTestCommands", Value: "1"}}})
	}
	return encode(bson.D{{Key: "argv", Value: bson.A{"pando", "serve"}}, {Key: "parsed", Value: parsed}, {Key: "ok", Value: 1.0}})
}

func (r *request) listCommands() (bsoncore.Document, error) {
	list := bson.D{}
	for name, c := range r.server.commands {
		if name == c.name {
			list = append(list, bson.E{Key: name, Value: bson.D{{Key: "help", Value: c.help}, {Key: "requiresAuth", Value: !c.open}, {Key: "adminOnly", Value: c.admin}, {Key: "apiVersions", Value: versions(c)}}})
		}
	}
	sortFields(list)
	return encode(bson.D{{Key: "commands", Value: list}, {Key: "ok", Value: 1.0}})
}

func versions(c *command) bson.A {
	if c.stable {
		return bson.A{"1"}
	}
	return bson.A{}
}

func (r *request) whatsmyuri() (bsoncore.Document, error) {
	return encode(bson.D{{Key: "you", Value: r.conn.net.RemoteAddr().String()}, {Key: "ok", Value: 1.0}})
}

// dbHash hashes the documents of each collection, in the order of their _id.
func (r *request) dbHash() (bsoncore.Document, error) {
	list, err := r.server.store.Database(r.db).Collections(r.ctx)
	if err != nil {
		return nil, err
	}
	only := texts(r.args["collections"])
	hashes, uuids, capped, whole := bson.D{}, bson.D{}, []string{}, newDigest()
	for _, c := range list {
		if c.View || c.Name == profileName || len(only) > 0 && !slices.Contains(only, c.Name) {
			continue
		}
		if truthy(bsoncore.Document(c.Options), "capped") {
			capped = append(capped, c.Name)
		}
		uuids = append(uuids, bson.E{Key: c.Name, Value: c.UUID})
		d := newDigest()
		for doc, err := range r.lookup(c.Name).Find(r.ctx, nil, &document.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}}) {
			if err != nil {
				return nil, err
			}
			d.add(doc)
		}
		sum := d.sum()
		hashes = append(hashes, bson.E{Key: c.Name, Value: sum})
		whole.add([]byte(sum))
	}
	return encode(bson.D{{Key: "host", Value: r.server.o.Address}, {Key: "collections", Value: hashes}, {Key: "capped", Value: capped},
		{Key: "uuids", Value: uuids}, {Key: "md5", Value: whole.sum()}, {Key: "timeMillis", Value: int32(r.server.clock.Now().Sub(r.start).Milliseconds())},
		{Key: "ok", Value: 1.0}})
}

// connPoolStats says that there are no connections to other servers.
func connPoolStats(*request) (bsoncore.Document, error) {
	out := bson.D{{Key: "numClientConnections", Value: int32(0)}, {Key: "numAScopedConnections", Value: int32(0)}}
	for _, name := range []string{"totalInUse", "totalAvailable", "totalCreated", "totalRefreshing", "totalRefreshed"} {
		out = append(out, bson.E{Key: name, Value: int32(0)})
	}
	return encode(append(out, bson.D{{Key: "pools", Value: bson.D{}}, {Key: "hosts", Value: bson.D{}},
		{Key: "numReplicaSetMonitorsCreated", Value: int32(0)}, {Key: "replicaSets", Value: bson.D{}}, {Key: "ok", Value: 1.0}}...))
}

func (r *request) compact() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	if _, err := c.Indexes(r.ctx); err != nil { // there is none, or it is a view
		return nil, err
	}
	before := r.server.store.DB().Metrics().SegmentBytes
	if err := r.server.store.DB().Compact(r.ctx, compactOptions()); err != nil {
		return nil, err
	}
	freed := max(0, before-r.server.store.DB().Metrics().SegmentBytes)
	return encode(bson.D{{Key: "bytesFreed", Value: freed}, {Key: "ok", Value: 1.0}})
}

func (r *request) reIndex() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	list, err := c.Indexes(r.ctx)
	if err != nil {
		return nil, err
	}
	docs := bson.A{}
	for _, x := range list {
		docs = append(docs, x.Spec)
	}
	if err := c.Reindex(r.ctx); err != nil {
		return nil, err
	}
	return encode(bson.D{{Key: "nIndexesWas", Value: int32(len(list))}, {Key: "nIndexes", Value: int32(len(list))}, {Key: "indexes", Value: docs}, {Key: "ok", Value: 1.0}})
}

// fsync brings everything into the files where it is to stay, as MongoDB's does with a checkpoint. The log is synced as well: change
// streams read from it what happened, also after a power cut.
func (r *request) fsync() (bsoncore.Document, error) {
	lock, err := r.flag("lock")
	if err != nil {
		return nil, err
	}
	if lock {
		return nil, document.NewError(codeNotSupported, "fsync with lock is not supported: a backup needs no lock here")
	}
	db := r.server.store.DB()
	if err := db.Sync(); err != nil {
		return nil, err
	}
	if err := db.Checkpoint(r.ctx); err != nil {
		return nil, err
	}
	return encode(bson.D{{Key: "numFiles", Value: int32(1)}, {Key: "ok", Value: 1.0}})
}

// specialStage returns what answers aggregation stages whose rows come from the server. A cursor may come to one in a getMore: somebody else
// may have logged in by then where it was opened.
func (r *request) specialStage() func(_ context.Context, stage string, spec bson.RawValue) ([]bson.Raw, bool, error) {
	own := r.conn.auth.userDigest()
	return func(_ context.Context, stage string, spec bson.RawValue) ([]bson.Raw, bool, error) {
		switch stage {
		case "$currentOp":
			rows, err := r.currentOpStage(spec)
			return rows, true, err
		case "$listSessions", "$listLocalSessions":
			rows, err := r.sessionStage(stage, spec, own)
			return rows, true, err
		}
		return nil, false, nil
	}
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
