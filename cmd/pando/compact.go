package main

import (
	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newCompactCommand(a *app) *cobra.Command {
	var smallest bool
	cmd := &cobra.Command{
		Use:   "compact DIR",
		Short: "Rewrite everything as small as it gets",
		Long: `Compact rewrites a database as small as it gets. It needs as much free space as the data takes meanwhile, at most. An interrupted
one loses nothing, and what it has rewritten stays so; the next one begins at the start again. What the log keeps for the changes command
stays.`,
		Example: `  pando compact mydb
  pando compact mydb --zstd`,
		Args: exactly(1),
	}
	cmd.Flags().BoolVar(&smallest, "zstd", false, "compress with zstd instead of S2: smaller, slower to write")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.using(args[0], keepingChanges(), func(db *pando.DB) error {
			var o pando.CompactOptions
			if smallest {
				o.Compression = pando.Zstd
			}
			before := db.Metrics().SegmentBytes
			bar := a.progress("compacting", before)
			defer bar.end()
			o.Progress = func(done, total int64) { bar.set(shareOf(before, done, total)) }
			if err := db.Compact(cmd.Context(), o); err != nil {
				return err
			}
			bar.end()
			after := db.Metrics().SegmentBytes
			return a.print(map[string]int64{"bytesBefore": before, "bytesAfter": after}, "%s became %s\n",
				formatSize(before), formatSize(after))
		})
	}
	return cmd
}

// shareOf is the part of whole that done is of total. As an integer the product would be too large from 3 GB on.
func shareOf(whole, done, total int64) int64 {
	return int64(float64(whole) * (float64(done) / float64(max(total, 1))))
}
