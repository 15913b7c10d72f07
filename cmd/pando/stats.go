package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newStatsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats DIR",
		Short: "Print sizes and counters",
		Long: `Stats prints the sizes of a database. With --json it prints every metric; counters begin when the command opens the
database.`,
		Example: `  pando stats mydb
  pando stats mydb --json`,
		Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.reading(args[0], func(db *pando.DB) error {
				rows, err := keyspaceRows(db)
				if err != nil {
					return err
				}
				if a.json {
					return newEncoder(a.out).Encode(metricsByName(db.Metrics()))
				}
				return a.table(statsTable(args[0], db.Metrics(), rows))
			})
		},
	}
}

// statsTable picks what people want to know.
func statsTable(dir string, m pando.Metrics, rows []keyspaceRow) [][]string {
	records, hashes := int64(0), int64(0)
	for _, r := range rows {
		records += r.Records
		if r.Layout == pando.Hash.String() {
			hashes++
		}
	}
	keyspaces := formatCount(int64(len(rows)))
	if hashes > 0 {
		keyspaces += fmt.Sprintf(", %s of them with the layout %v", formatCount(hashes), pando.Hash)
	}
	table := [][]string{
		{"directory", dir},
		{"keyspaces", keyspaces},
		{"records", formatCount(records)},
		{"last change", formatCount(int64(m.LastSeq))},
		{"not settled", formatCount(int64(m.LastSeq - m.Settled))},
		{"segments", fmt.Sprintf("%s, %s, %s in use", countOf(int64(m.Segments), "file"), formatSize(m.SegmentBytes), formatSize(m.LiveBytes))},
	}
	if m.LogSize > 0 {
		table = append(table, []string{"log", formatSize(m.LogSize)})
	}
	if m.SpaceAmplification > 0 {
		table = append(table, []string{"files over use", fmt.Sprintf("%.2f", m.SpaceAmplification)})
	}
	if m.DiskFree >= 0 {
		table = append(table, []string{"disk", fmt.Sprintf("%s free, of which checkpoints may need %s", formatSize(m.DiskFree), formatSize(m.DiskNeeded))})
	}
	return append(table,
		[]string{"page cache", fmt.Sprintf("%s of %s", formatSize(m.CacheUsed), formatSize(m.CacheBytes))},
		[]string{"inner nodes", formatSize(m.InnerBytes)})
}

// metricsByName returns every metric under its name, which begins with a small letter as everywhere in our JSON.
func metricsByName(m pando.Metrics) map[string]any {
	v := reflect.ValueOf(m)
	named := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		value := v.Field(i).Interface()
		if p, ok := value.(pando.Profile); ok {
			value = p.String()
		}
		named[strings.ToLower(name[:1])+name[1:]] = value
	}
	return named
}
