package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/importer"
	"github.com/spf13/cobra"
)

// changeRow is one change for machines.
type changeRow struct {
	Seq      uint64  `json:"seq"`
	Kind     string  `json:"kind"`
	Keyspace string  `json:"keyspace"`
	Key      *string `json:"key,omitempty"`
	Value    *string `json:"value,omitempty"`
	End      *string `json:"end,omitempty"`
	Base64   string  `json:"base64,omitempty"`
	Expires  string  `json:"expires,omitempty"` // a time.Time has no JSON beyond the year 9999
	Last     bool    `json:"last"`              // the last change of its commit
}

func newChangeRow(c pando.Change) changeRow {
	row := changeRow{Seq: c.Seq, Kind: c.Kind.String(), Keyspace: c.Keyspace, Last: c.Last}
	switch c.Kind {
	case pando.ChangePut:
		row.Value = importer.Text("value", c.Value, &row.Base64)
		row.Key = importer.Text("key", c.Key, &row.Base64)
	case pando.ChangeNote:
		row.Value = importer.Text("value", c.Value, &row.Base64)
	case pando.ChangeDelete:
		row.Key = importer.Text("key", c.Key, &row.Base64)
	case pando.ChangeDeleteRange:
		row.Key = importer.Text("key", c.Key, &row.Base64)
		if c.End != nil {
			row.End = importer.Text("end", c.End, &row.Base64)
		}
	}
	if !c.Expires.IsZero() {
		row.Expires = c.Expires.Format(time.RFC3339Nano)
	}
	return row
}

func newChangesCommand(a *app) *cobra.Command {
	var (
		from  uint64
		limit = unlimited
	)
	cmd := &cobra.Command{
		Use:   "changes DIR",
		Short: "Print committed changes in their order",
		Long: `Changes prints a JSON object for each change, in the order of the commits. It reads the log, which reaches back as far as
those who wrote had it kept (--keep-changes); where the start is gone, it fails. It opens the database for writing:
what a crash has left is settled, and nothing else is written.`,
		Example: `  pando import mydb flights.csv -k flights --keep-changes 1GiB
  pando changes mydb --from 500 --limit 10`,
		Args: exactly(1),
	}
	cmd.Flags().Uint64Var(&from, "from", 1, "the first sequence number `SEQ`")
	cmd.Flags().Var(&limit, "limit", "print at most `N` changes (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.using(args[0], keepingChanges(), func(db *pando.DB) error {
			encoder := newEncoder(a.out)
			n := limitFlag(0)
			for c, err := range db.Changes(cmd.Context(), pando.ChangesOptions{From: from}) {
				if err != nil {
					if errors.Is(err, pando.ErrChangesGone) {
						err = fmt.Errorf("%w; it begins with change %d: write with --keep-changes to have more kept", err, db.OldestChange())
					}
					return err
				}
				if n == limit {
					break
				}
				if err := encoder.Encode(newChangeRow(c)); err != nil {
					return err
				}
				n++
			}
			return nil
		})
	}
	return cmd
}
