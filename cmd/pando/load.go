package main

import (
	"errors"

	"github.com/pandodb/pando/internal/importer"
	"github.com/spf13/cobra"
)

func newLoadCommand(a *app) *cobra.Command {
	var separator string
	l := loader{a: a}
	cmd := &cobra.Command{
		Use:   "load DIR FILE|-",
		Short: "Store lines of key and value",
		Long: `Load stores a line as a key, up to the first tab, and a value, all of the rest. It is the fastest way in, and reads what scan
prints where no key has a tab or newline in it, and no value a newline, or a carriage return at its end: export and import take
everything. Files may be compressed with gzip or zstd; - is the standard input.`,
		Example: `  pando load mydb words.tsv
  pando scan mydb | pando load copy -
  pando load mydb pairs.txt.zst --separator ' = ' -k settings`,
		Args: exactly(2),
	}
	l.ks.register(cmd)
	l.layout.register(cmd)
	l.write.register(cmd)
	cmd.Flags().StringVar(&separator, "separator", "\t", "`TEXT` between key and value")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if separator == "" {
			return usageError{errors.New("the separator is empty")}
		}
		l.file = args[1]
		l.options = importer.Options{Format: importer.Lines, Separator: separator}
		return l.run(cmd.Context(), args[0])
	}
	return cmd
}
