// Package pando is an embedded key-value database: it reads like a B-tree, writes like a log, proves every byte that it
// reads, and gives disk space back while it runs.
//
// There are six nouns. A [DB] is an open database directory. A [Keyspace] is one map of keys to values in it, ordered unless
// its layout is [Hash]; a database has a default one and as many named ones as wanted. A [Tx] reads and writes several keyspaces as
// one. A
// [Snapshot] reads them as they were at one moment. A [Batch] collects writes that are committed as one. An [Iterator]
// walks over the pairs of a keyspace in the order of their keys.
//
// Beside them, [DB.Changes] tells every commit in its order, [Keyspace.PutReader] and [Keyspace.OpenValue] take and give long
// values piece by piece, and a [Reader] is for servers, whose short reads must not allocate. [DB.Backup], [DB.Check],
// [DB.Compact] and [Salvage] take care of what is on the disk. Documents are in package document.
//
// # The life of a write
//
// [DB.Put], [DB.Write], [DB.Update] and the like encode a batch, append it to the write-ahead log, apply it to the memtable
// and, in the [Durable] profile, wait until one sync that they share with all concurrent writers has put it on stable
// storage. Later a checkpoint merges the memtable into the keyspaces' trees and hash tables, which are written copy-on-write into segment
// files, and recycles the log.
//
// # The life of a read
//
// A read takes the newest of: what its transaction has written, the memtable, the tree. A point read of resident data takes
// no lock and allocates nothing. Readers never wait for writers, nor writers for readers.
//
// # Slices
//
// Slices that are passed in may be changed as soon as the call returns, those of Range, RangeReverse and Prefix once the loop has
// begun. What Get and Nth return is the caller's own. GetTo
// appends to a slice of the caller's, and returns it as it was when there is nothing to append. It may write to all of that slice's
// capacity, behind what it appends too: who reads values into neighbouring parts of one buffer gives each its own, buf[i:i:j]. What an
// Iterator and the Range loops return is valid until the next step; what is kept for longer has to be copied.
//
// # Concurrency
//
// DB, Keyspace and Snapshot may be used from any number of goroutines at once. A Tx, a Batch and an Iterator are used by one
// goroutine at a time. Who loops over Range, RangeReverse or Prefix of something that several goroutines share and wants the
// error of that loop alone uses an Iterator: Err of a DB, Keyspace or Snapshot is that of the newest failed loop of all.
//
// What is closed answers with [ErrClosed], a transaction that has ended with [ErrTxDone]. [DB.Close] waits for running calls,
// not for open iterators, snapshots and transactions.
//
// # Errors
//
// Errors are for errors.Is with the sentinels of this package. A key that is not there is [ErrNotFound]. Damage is
// [ErrCorrupt], and errors.As with a *[CorruptError] tells file and offset.
package pando
