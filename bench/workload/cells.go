package workload

import "github.com/pandodb/pando/bench/jsonfile"

// SaveCells writes cells into a file.
func SaveCells(name string, cells []Cell) error { return jsonfile.Save(name, cells) }

// LoadCells is the inverse of SaveCells.
func LoadCells(name string) ([]Cell, error) { return jsonfile.Load[[]Cell](name) }
