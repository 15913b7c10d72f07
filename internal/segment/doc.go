// Package segment keeps settled data: blobs that prove themselves, in segments that are only ever appended to.
//
// Whoever holds a Pointer to a blob gets back the bytes that were written, or an error that says where the damage lies: the
// checksum in the pointer binds the bytes to their database, segment and offset, so that a stale, misplaced or foreign blob
// does not verify. Nothing is overwritten in place, no segment number is used twice, and no segment is continued by a later
// run of the process.
//
// There are two classes of segments. Those of class Nodes are written by a Writer, which buffers, and are reachable from a
// root only; what a crash leaves of them is removed by Open. Those of class Values take blobs from AppendValue, called by
// many committers at once; the log refers to them before any root does, so Open keeps what it finds.
//
// Failures: damage is a *corrupt.Error and concerns one blob, never the whole store; errors of the file system are passed
// on, wrapped; one of reading is ErrUnreadable, and damage too where it does not pass. After a failed sync the store accepts no more
// writes (ErrFailed) and goes on reading. After HandOver it changes nothing in its directory (ErrClosed), and goes on reading too.
//
// Of its files no more are open than half of what the process may have, at most 4,096: one that nobody has read for a while is closed, and
// opened again when it is wanted.
//
// It never starts a goroutine, never retries a sync, and never reads more of a file than the blob that was asked for.
//
// Cost: Read is one pread of the exact blob, or a copy out of a mapping of the file where the blob is believed to be in the page
// cache of the system, one checksum and, when it is compressed, one decompression; no allocation with a warm Buffer, no lock, one
// atomic addition and subtraction on the segment's own cache line. AppendValue is one pwritev (a pwrite for each
// piece where there is no such call), made outside of the lock under which it takes its place. A Writer makes one pwrite for each 512 KiB
// of what goes to the same segment.
//
// The format is written down in docs/format/segment.md.
package segment
