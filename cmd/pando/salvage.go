package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/importer"
	"github.com/spf13/cobra"
)

func newSalvageCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "salvage DIR NEWDIR",
		Short: "Save what is intact of a damaged database",
		Long: `Salvage writes what can still be read of a damaged database into a new one, in NEWDIR, and prints a line for each loss. It
writes nothing into DIR. Indexes of documents are made again where anything was lost. The exit code is 4 when anything was lost.`,
		Example: `  pando salvage mydb saved`,
		Args:    exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.salvage(cmd.Context(), args[0], args[1])
		},
	}
}

// lossRow is one loss for machines. From and To, where they are known, are the keys between which records were lost.
type lossRow struct {
	Keyspace string  `json:"keyspace,omitempty"`
	From     *string `json:"from,omitempty"`
	To       *string `json:"to,omitempty"`
	Base64   string  `json:"base64,omitempty"`
	File     string  `json:"file,omitempty"`
	Offset   int64   `json:"offset"`
	Length   int64   `json:"length"`
	Error    string  `json:"error"`
}

func newLossRow(l pando.Loss) lossRow {
	row := lossRow{Keyspace: l.Keyspace, File: l.File, Offset: l.Offset, Length: l.Length, Error: l.Reason}
	if l.Keys && l.Lo != nil {
		row.From = importer.Text("from", l.Lo, &row.Base64)
	}
	if l.Keys && l.Hi != nil {
		row.To = importer.Text("to", l.Hi, &row.Base64)
	}
	return row
}

// salvage prints what a salvage saved and lost; a loss is errDamage.
func (a *app) salvage(ctx context.Context, dir, target string) error {
	vacant, err := isVacant(dir)
	if err != nil {
		return err
	}
	if vacant {
		return fmt.Errorf("salvage %s: no database there: %w", dir, pando.ErrNotFound)
	}
	var o pando.Options
	a.complete(&o)
	var report *pando.SalvageReport
	err = a.follow(ctx, "saving", func(ctx context.Context) (err error) {
		report, err = document.Salvage(ctx, dir, target, &document.Options{Storage: o})
		return err
	})
	if err != nil {
		return err
	}
	if len(report.Lost) > 0 {
		losses := "1 loss"
		if n := len(report.Lost); n > 1 {
			losses = fmt.Sprintf("%d losses", n)
		}
		err = fmt.Errorf("%w: %s", errDamage, losses)
	}
	if !a.json {
		for i := range report.Lost {
			report.Lost[i].Reason = plain(report.Lost[i].Reason)
		}
		return errors.Join(err, a.print(nil, "%s", report))
	}
	rows := make([]lossRow, 0, len(report.Lost))
	for _, l := range report.Lost {
		rows = append(rows, newLossRow(l))
	}
	return errors.Join(err, newEncoder(a.out).Encode(map[string]any{
		"keyspaces": report.Keyspaces, "records": report.Records, "bytes": report.Bytes, "older": report.Older,
		"lost": rows, "truncated": report.Truncated,
	}))
}
