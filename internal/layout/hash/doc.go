// Package hash is the layout for point reads: a hash table from keys to the places of their records, without an order of keys.
//
// A record is a piece (package segment) that verifies by itself, so a read of one that is not in memory reads that record and nothing
// beside it. Where the records lie is written in index pages: the first bits of a key's hash, depth of them, are the number of its page,
// and the page has an entry of eight to twelve bytes a record, with the place and the next bits of the hash. All pages have the same
// depth, and hold 128 to 512 records on average; when there are more, every page becomes two, as a hash table grows, when there are far
// fewer two become one. Groups of 256 slots tell where the pages lie, and the root tells where the groups lie.
//
// Index pages are read through the page cache, into which they come merged with their deltas. A delta is a few changes to an index page,
// written without the page; so a checkpoint that touches every page writes sixteen bytes a change and not the whole index. Groups stay in
// memory from their first use on: they take a third of a byte a record.
//
// What it costs: a Get is two cache misses in an index page, and then one or two in the record. A key that is absent reads nothing, in all but
// one of some thousand cases. An update or a delete reads the record that it replaces, because only the key itself, which stands in
// the record, tells it from another one of the same hash; an insert reads nothing. A walk over everything costs a read a record. Records are
// not compressed, and the options of leaves do not apply.
//
// Keys whose hashes have the same bits make a page larger, not wrong: its entries are searched, and each record says which key it is of.
//
// What cannot be read: a record that is damaged is reported to whoever asks for its key, or for one of the same hash. What is written to a
// page that cannot be read settles beside it, as deltas; a delete is then a record as well, a tombstone, since nobody can tell what it
// deletes. Damage never keeps anything from being dropped.
//
// The format is written down in docs/format/hash.md. The package knows nothing of logs, memtables or documents; see package layout for what
// every layout promises.
package hash
