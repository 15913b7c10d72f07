// Package compat holds one small database for each released format, as the program of its time wrote it. Every later build
// must open it, read what is in it, check it, write to it and salvage it.
//
// A database is one text file, testdata/vN.txt: for each of its files a line with name and length, then the bytes in rows of
// 32 behind their offset; rows of zeros are left out. A file of a released format never changes. That of the present format is
// made anew with
//
//	go test ./test/compat -update
//
// as long as it has not been released. A new format gets a new file, and a line in the table of the test.
package compat
