package main

import (
	"context"
	"errors"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newBackupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR TARGET",
		Short: "Copy a database",
		Long: `Backup copies a database to another directory, which then opens as a database. Files are hard links where the file system has
them. An earlier backup of the same database in TARGET is brought up to date.`,
		Example: `  pando backup mydb /backups/mydb`,
		Args:    exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.backup(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			return a.reading(args[1], func(db *pando.DB) error { return a.describeCopy(db, args[1]) })
		},
	}
}

// backup copies a database beside other readers when everything in it is settled. What a crash left has to be settled first,
// by a writer.
func (a *app) backup(ctx context.Context, dir, target string) error {
	copyTo := func(db *pando.DB) error {
		return a.follow(ctx, "copying", func(ctx context.Context) error { return db.Backup(ctx, target) })
	}
	err := a.reading(dir, copyTo)
	if errors.Is(err, pando.ErrReadOnly) {
		err = a.using(dir, keepingChanges(), copyTo)
	}
	return err
}

// describeCopy prints what a backup or a restored database holds.
func (a *app) describeCopy(db *pando.DB, dir string) error {
	rows, err := keyspaceRows(db)
	if err != nil {
		return err
	}
	records := int64(0)
	for _, r := range rows {
		records += r.Records
	}
	m := db.Metrics()
	return a.print(map[string]any{"directory": dir, "keyspaces": len(rows), "records": records, "bytes": m.SegmentBytes, "lastSeq": m.LastSeq},
		"%s: %s, %s, %s, up to change %d\n", dir, countOf(int64(len(rows)), "keyspace"), countOf(records, "record"), formatSize(m.SegmentBytes), m.LastSeq)
}
