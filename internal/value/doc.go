// Package value keeps values that lie apart from their keys: of any length up to 1 GiB, in blobs of the segment store.
//
// A value of up to ChunkBytes is one blob. A longer one is a blob for each ChunkBytes of it, and one more that says where they
// lie; no more than one chunk is in memory at a time, neither when writing nor when streaming. Each blob also holds the key,
// so that whoever cleans a segment can find out whom a blob belongs to.
//
// What is read is what was written, or an error: damage is a *corrupt.Error that names file and offset, and what has been
// appended to the caller's memory by then is taken back.
//
// Cost: reading a value that is stored without compression is one pread straight into the caller's memory and one checksum, without a copy
// or an allocation when there is room for the value, its key and four bytes more. A compressed one is decompressed straight into the
// caller's memory, each time: a short one takes S2 where zstd is asked for. Appending is one write for each chunk (segment.AppendValue).
//
// The package holds no state of its own and starts no goroutine. The format is written down in docs/format/segment.md.
package value
