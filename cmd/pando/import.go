package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pandodb/pando/internal/importer"
	"github.com/spf13/cobra"
)

func newImportCommand(a *app) *cobra.Command {
	var format, key string
	l := loader{a: a}
	c := collector{loader: &l}
	cmd := &cobra.Command{
		Use:   "import DIR FILE|-",
		Short: "Store the records of a JSON lines or CSV file",
		Long: `Import stores each record of a file, or of the standard input for -, plain or compressed with gzip or zstd.

A record of JSON lines is stored as its line without white space. A record of CSV is stored as a JSON object, in which numbers
are numbers and values that are empty or NA are left out. Its key is the text of the field that --key names, or of several,
joined by "/"; of JSON lines, a number that has an exponent stands there without it. Without --key records are numbered, behind the highest
number that is there. The format "pairs" is what export writes as JSON lines.

With --collection each record is a document: JSON lines are read as Extended JSON, whose _id is kept. Those without one get one, or,
with --key, their key as _id; then none may have one already.

Records are committed in batches of about 1 MiB. What an interrupted import had committed stays.`,
		Example: `  pando import mydb packages.jsonl.zst -k packages --key _id
  pando import mydb flights.csv -k flights --key year,month,day,carrier,flight
  pando import mydb flights.csv.zst --collection flights
  pando export mydb - -k packages | pando import copy - -k packages --format pairs`,
		Args: exactly(2),
	}
	l.ks.register(cmd)
	l.layout.register(cmd)
	l.write.register(cmd)
	c.register(cmd)
	cmd.Flags().StringVar(&format, "format", "", "`FORMAT`: jsonl, csv or pairs (default: what the name of the file says)")
	cmd.Flags().StringVar(&key, "key", "", "`FIELD` or fields, separated by commas, that make the key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l.file = args[1]
		var err error
		if l.options, err = importOptions(l.file, format, key); err != nil {
			return usageError{err}
		}
		if cmd.Flags().Changed("collection") {
			if c.collection == "" {
				return usageError{errors.New("--collection wants a name")}
			}
			if l.ks != "" || l.layout.options != nil || l.options.Format == importer.Pairs {
				return usageError{errors.New("--collection takes JSON lines or CSV, and does not go with --keyspace or --layout")}
			}
			return c.run(cmd.Context(), args[0])
		}
		if c.skipDuplicates || cmd.Flags().Changed("database") || cmd.Flags().Changed("storage") {
			return usageError{errors.New("--database, --storage and --skip-duplicates go with --collection")}
		}
		return l.run(cmd.Context(), args[0])
	}
	return cmd
}

// importOptions understands the flags of import.
func importOptions(file, format, key string) (importer.Options, error) {
	var o importer.Options
	if format == "" {
		var ok bool
		if o.Format, ok = importer.FormatOf(file); !ok {
			return o, fmt.Errorf("the name %q does not tell a format: want --format jsonl, csv or pairs", file)
		}
	} else {
		var err error
		if o.Format, err = importer.ParseFormat(format); err != nil {
			return o, err
		}
	}
	if o.Format == importer.Lines {
		return o, errors.New("lines of key and value are read by the load command")
	}
	if key == "" {
		return o, nil
	}
	if o.Format == importer.Pairs {
		return o, errors.New("--key does not go with pairs, which have keys")
	}
	o.Key = strings.Split(key, ",")
	return o, nil
}
