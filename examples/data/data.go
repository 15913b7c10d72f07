// Package data carries a small extract of real data, for examples and for trying the command line out. README.md names its
// sources. The files are part of the program and cost no system call.
package data

import (
	"embed"
	"io/fs"
)

// Names of the files.
const (
	Packages = "debian-packages.jsonl" // one JSON document for each package; _id is its name
	Flights  = "flights.csv"           // one line for each flight, under a header
	Airlines = "airlines.csv"          // the names of carriers
	Airports = "airports.csv"          // the airports to and from which the flights go
	Planes   = "planes.csv"            // the planes by tail number
)

//go:embed debian-packages.jsonl flights.csv airlines.csv airports.csv planes.csv
var files embed.FS

// Files returns the extract.
func Files() fs.FS { return files }
