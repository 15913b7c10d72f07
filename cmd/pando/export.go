package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/importer"
	"github.com/spf13/cobra"
)

func newExportCommand(a *app) *cobra.Command {
	var (
		ks     keyspaceFlag
		part   boundFlags
		format string
	)
	cmd := &cobra.Command{
		Use:   "export DIR FILE|-",
		Short: "Write records to a JSON lines or CSV file",
		Long: `Export writes a line for each record, in the order of the keys: a JSON object with key and value, or CSV with the columns key,
value and base64. What is not UTF-8, or of 128 MiB and more, is written as base64; the member or column base64 then names it. When
keys expire is not written: of records that import makes of the file none does. A name that ends in .gz or .zst is compressed. The
file appears when it is complete.`,
		Example: `  pando export mydb packages.jsonl.zst -k packages
  pando export mydb - --prefix user/ --format csv`,
		Args: exactly(2),
	}
	ks.register(cmd)
	part.register(cmd)
	cmd.Flags().StringVar(&format, "format", "", "`FORMAT`: jsonl or csv (default: what the name of the file says, else jsonl)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := exportFormat(args[1], format)
		if err != nil {
			return usageError{err}
		}
		if isStandardOutput(args[1]) {
			args[1] = standard
		}
		o, err := part.iterOptions(hexFlags{}, false)
		if err != nil {
			return err
		}
		return a.readingKeyspace(args[0], ks, func(k *pando.Keyspace) error {
			return a.export(cmd.Context(), k, o, args[1], f)
		})
	}
	return cmd
}

// exportFormat understands the flags of export.
func exportFormat(file, format string) (importer.Format, error) {
	if format == "" {
		if f, ok := importer.FormatOf(file); ok {
			return f, nil
		}
		return importer.JSONLines, nil
	}
	f, err := importer.ParseFormat(format)
	if err != nil || (f != importer.JSONLines && f != importer.CSV) {
		return 0, fmt.Errorf("%q is not a format to export: want jsonl or csv", format)
	}
	return f, nil
}

// export writes a file, and says how much when it is not the standard output.
func (a *app) export(ctx context.Context, k *pando.Keyspace, o *pando.IterOptions, name string, format importer.Format) error {
	out, err := a.createOutput(ctx, name)
	if err != nil {
		return err
	}
	bar := &progress{}
	if name != standard && a.terminal() != nil {
		total, err := k.Count(o.Lower, o.Upper)
		if err != nil {
			return errors.Join(fmt.Errorf("export to %s: %w", name, err), out.abandon())
		}
		bar = a.progressOf("exporting", total, false)
	}
	defer bar.end()
	records := int64(0)
	write, flush := pairWriter(out, format)
	err = walk(ctx, k, o, false, unlimited, func(key, value []byte) error {
		if records%everyRecords == 0 {
			bar.set(records)
		}
		records++
		return write(importer.NewPair(key, value))
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("export to %s: %w", name, err), out.abandon())
	}
	bar.end()
	if err := out.finish(); err != nil {
		return fmt.Errorf("export to %s: %w", name, err)
	}
	if name == standard {
		return nil
	}
	return a.print(map[string]any{"file": name, "records": records}, "%s to %s\n", countOf(records, "record"), name)
}

// pairWriter returns what writes pairs in a format, and what to call behind the last one.
func pairWriter(out *output, format importer.Format) (write func(importer.Pair) error, flush func() error) {
	if format != importer.CSV {
		e := newEncoder(out)
		return func(p importer.Pair) error { return e.Encode(p) }, func() error { return nil }
	}
	w := csv.NewWriter(out)
	header := w.Write([]string{"key", "value", "base64"})
	write = func(p importer.Pair) error { return w.Write([]string{*p.Key, *p.Value, p.Base64}) }
	flush = func() error {
		w.Flush()
		return errors.Join(header, w.Error())
	}
	return write, flush
}
