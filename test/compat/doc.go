// Package compat holds small databases of each released format, as the program of its time wrote them: one whose keyspaces are trees, and
// one whose keyspaces are hash tables. Every later build must open them, read what is in them, check them, write to them and salvage them.
//
// A database is one text file, testdata/vN.txt or testdata/vN-hash.txt: for each of its files a line with name and length, then the bytes in rows of
// 32 behind their offset; rows of zeros are left out. A file of a released format never changes. One of the present format is
// made anew with
//
//	go test ./test/compat -run TestFormats/v1-hash -update
//
// as long as it has not been released. A new format gets new files, and lines in the table of the test.
package compat
