package main

import (
	"context"
	"errors"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR",
		Short: "Read and verify everything",
		Long: `Check reads everything that a reader can reach, verifies it, and prints a line for each damage. The exit code is 4 when there is
damage; salvage then saves what is intact.`,
		Example: `  pando check mydb
  pando check mydb --json`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(args[0], func(db *pando.DB) error { return a.check(cmd.Context(), db) })
		},
	}
}

// damageRow is one damage for machines.
type damageRow struct {
	Keyspace string `json:"keyspace,omitempty"`
	File     string `json:"file,omitempty"`
	Offset   int64  `json:"offset"`
	Length   int64  `json:"length"`
	Error    string `json:"error"`
}

func newDamageRow(d pando.Damage) damageRow {
	row := damageRow{Keyspace: d.Keyspace, Error: d.Err.Error()}
	var c *pando.CorruptError
	if errors.As(d.Err, &c) {
		row.File, row.Offset, row.Length = c.File, c.Offset, c.Length
	}
	return row
}

// verify checks a database with a bar.
func (a *app) verify(ctx context.Context, db *pando.DB) (r *pando.Report, err error) {
	err = a.follow(ctx, "checking", func(ctx context.Context) error {
		r, err = db.Check(ctx)
		return err
	})
	return r, err
}

// check prints what a check of a database finds; damage is errDamage.
func (a *app) check(ctx context.Context, db *pando.DB) error {
	r, err := a.verify(ctx, db)
	if err != nil {
		return err
	}
	return a.printReport(r)
}

func (a *app) printReport(r *pando.Report) (err error) {
	outcome := "no damage"
	if len(r.Damage) > 0 {
		outcome, err = "DAMAGED", errDamage
	}
	rows := make([]damageRow, 0, len(r.Damage))
	for _, d := range r.Damage {
		rows = append(rows, newDamageRow(d))
	}
	if a.json {
		return errors.Join(err, newEncoder(a.out).Encode(map[string]any{
			"keyspaces": r.Keyspaces, "blobs": r.Blobs, "bytes": r.Bytes, "damage": rows, "truncated": r.Truncated,
		}))
	}
	for _, row := range rows {
		where := "database"
		if row.Keyspace != "" {
			where = "keyspace " + row.Keyspace
		}
		if printing := a.print(nil, "%s: %s\n", plain(where), plain(row.Error)); printing != nil {
			return errors.Join(err, printing)
		}
	}
	if r.Truncated {
		if printing := a.print(nil, "and more: only the first %s are listed\n", countOf(pando.MaxDamage, "damage")); printing != nil {
			return errors.Join(err, printing)
		}
	}
	return errors.Join(err, a.print(nil, "checked %s, %s, %s: %s\n",
		countOf(r.Keyspaces, "keyspace"), countOf(r.Blobs, "blob"), formatSize(r.Bytes), outcome))
}
