// Package train makes compression dictionaries for zstd: what many short payloads have in common, in the format of RFC 8878, section 5.
//
// The content is chosen by the algorithm of Liao, Petri, Moffat and Wirth, "Effective Construction of Relative Lempel-Ziv Dictionaries"
// (WWW 2016), with a table of hashes in place of a suffix array, as the trainer of zstd has it. The entropy tables in front of it, which
// spare each frame its own, are those of the compression library.
//
// Dictionary is deterministic: of the same samples it makes the same dictionary. It takes memory for two tables, 4 MiB at most, and one
// zstd encoder at a time, and never fails: samples from which no dictionary can be made that helps have none.
package train

import "github.com/klauspost/compress/zstd"

// ID is the number that frames name a dictionary by.
const ID = 1

const (
	level        = zstd.SpeedDefault // that leaves are compressed with
	leastContent = 256               // bytes below which a dictionary is not worth its tables
	sampleBytes  = 8 << 10           // that are looked at for the content, of each sample: the time goes with all of them, and more teach little
	tableSamples = 64                // samples that the entropy tables are made of
)

// Dictionary makes one of at most size bytes of content, and some hundred bytes of tables, for so many payloads like the samples, of which there are at
// most 65,535. It is nil where they have too little in common. The samples are whole payloads, and are only read.
func Dictionary(samples [][]byte, size, payloads int) []byte {
	if size < leastContent || len(samples) < 2 {
		return nil
	}
	return build(bestContent(samples, size, max(payloads, len(samples))), cut(every(samples, tableSamples)))
}

// build makes a dictionary of some content, with the tables of what samples leave; nil where the content is too little, or the tables would be of one
// symbol, or of none.
func build(content []byte, samples [][]byte) []byte {
	if len(content) < leastContent {
		return nil
	}
	raw, err := zstd.BuildDict(zstd.BuildDictOptions{ID: ID, Contents: samples, History: content, Level: level})
	if err != nil {
		return nil
	}
	return raw
}
