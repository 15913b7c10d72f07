package main

import (
	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

// keyspaceRow is what is printed of a keyspace.
type keyspaceRow struct {
	Name    string `json:"name"`
	Layout  string `json:"layout"`
	Records int64  `json:"records"`
}

func newKeyspacesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "keyspaces DIR",
		Short:   "List the keyspaces",
		Long:    `Keyspaces lists the keyspaces of a database with the number of their records.`,
		Example: `  pando keyspaces mydb`,
		Args:    exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.reading(args[0], func(db *pando.DB) error {
				rows, err := keyspaceRows(db)
				if err != nil {
					return err
				}
				if a.json {
					return newEncoder(a.out).Encode(rows)
				}
				cells := [][]string{{"NAME", "LAYOUT", "RECORDS"}}
				for _, r := range rows {
					cells = append(cells, []string{r.Name, r.Layout, formatCount(r.Records)})
				}
				return a.table(cells)
			})
		},
	}
}

// keyspaceRows lists all keyspaces in the order of their names.
func keyspaceRows(db *pando.DB) ([]keyspaceRow, error) {
	list, err := db.Keyspaces()
	if err != nil {
		return nil, err
	}
	rows := make([]keyspaceRow, 0, len(list))
	for _, info := range list {
		k, err := db.Keyspace(info.Name, nil)
		if err != nil {
			return nil, err
		}
		n, err := k.Count(nil, nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, keyspaceRow{Name: info.Name, Layout: info.Layout.String(), Records: n})
	}
	return rows, nil
}
