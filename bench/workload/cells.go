package workload

import (
	"encoding/json"
	"os"
)

// SaveCells writes cells into a file.
func SaveCells(name string, cells []Cell) error {
	text, err := json.Marshal(cells)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// LoadCells is the inverse of SaveCells.
func LoadCells(name string) ([]Cell, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var cells []Cell
	err = json.Unmarshal(text, &cells)
	return cells, err
}
