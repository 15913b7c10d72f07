// Package drivers runs the clients that applications use against the program pando serve, as it is built from this checkout:
// PyMongo's specification tests and its own, the Node driver, mongoose, the Java driver, Spring Data, mongosh, and mongodump with its
// kin, which move databases between a real mongod and pando serve. The Go driver is in the module godriver, because this module is not to
// depend on what that driver needs; the module tools says which version of MongoDB's tools is built.
//
// The tests promise that a client of another make finds what its maker promises. They install exact versions from the package
// registries, into directories that go away afterwards, so they run only where PANDO_DRIVERS=1 asks for them: then a runtime that
// is missing is a failure, never a test that was skipped.
package drivers
