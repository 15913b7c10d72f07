// Package document is collections of BSON documents with secondary indexes and MongoDB's query language, on a Pando database.
//
// There are five nouns. A Store is an open database directory. A Database is a named group of collections in it. A Collection
// holds documents, each under its _id. A Tx reads and writes several collections as one. A Cursor is a stream of results.
//
//	s, err := document.Open("data", nil)
//	flights, err := s.Collection(ctx, "flights", nil)
//	id, err := flights.Insert(ctx, bson.D{{Key: "carrier", Value: "UA"}, {Key: "delay", Value: 12}})
//	for doc, err := range flights.Find(ctx, document.JSON(`{"delay": {"$gt": 10}}`), nil) { ... }
//
// # Documents
//
// Wherever a document is asked for, a bson.D, bson.M, bson.Raw, a struct with bson tags, or Extended JSON as document.JSON will
// do. What comes back is bson.Raw: the same bytes that went in, with _id in front. A document has at most MaxDocumentBytes and
// nests at most MaxDepth deep.
//
// # Atomicity
//
// Each document is written together with its entries in all indexes, or not at all. InsertMany is one commit. Update and
// Delete with Many carry out one document after the other, in groups; a Transaction makes them one. A write that returned is as
// durable as the profile of the database says.
//
// # Reading
//
// Find, Aggregate and Count read the store as it was when they were called, whatever is written meanwhile. Readers never wait for
// writers. A document from a cursor or a loop is valid until the next step; Get returns the caller's own.
//
// # Errors
//
// Whatever a caller can do wrong is an *Error with MongoDB's code: errors.Is(err, document.DuplicateKey). A document that is not
// there is ErrNotFound. Errors of the storage underneath are those of package pando.
//
// # Care
//
// Store.DB is the database underneath, for backups, checks, compaction and metrics; Salvage saves what damage has left, and makes the
// indexes anew where they would tell of something else. Documents expire by TTL indexes, within Options.TTLInterval or by DeleteExpired.
// What a query sorts and groups beyond Options.QueryMemoryBytes, and all of them beyond Options.TotalQueryMemoryBytes, spills to files.
//
// # For servers
//
// What a server of MongoDB's protocol needs besides is public, and of no use to other programs: statements that are carried out once
// (WithStatements, Store.Outcome, Store.NewestNumber, Store.ForgetSession), calls that wait for one sync together (Store.SyncOnce,
// Store.SyncSeen), the oplog (Collection.ApplyDiff, Store.Noop, Store.LastTime, Store.Tick), commands of MongoDB's that are built of
// pieces here (Database.CreateAs, Collection.CopyCapped, Collection.StorageStats, IDIndex, KnownIndexFields), and what messages and checks
// need (CheckBSON, CheckStages, NewError, Number, TypeName, NewListCursor).
//
// # Concurrency
//
// Store, Database and Collection may be used from any number of goroutines at once; a Tx, the collections seen through it, and
// a Cursor by one at a time.
package document
