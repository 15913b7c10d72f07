package main

import (
	"context"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

// everyRecords is after how many records a long walk looks whether it has been interrupted.
const everyRecords = 256

func newScanCommand(a *app) *cobra.Command {
	var (
		ks       keyspaceFlag
		hex      hexFlags
		part     boundFlags
		reverse  bool
		keysOnly bool
		limit    = unlimited
	)
	cmd := &cobra.Command{
		Use:   "scan DIR",
		Short: "Print records in the order of their keys",
		Long: `Scan prints a line for each record: its key, a tab, its value. Tabs and newlines in them stand as they are: for programs, --json makes
each line a JSON object, as export does, which import reads. A keyspace with the layout
hash has no order: all of it is printed, in some order, and bounds are refused.`,
		Example: `  pando scan mydb --prefix user/ --limit 10
  pando scan mydb --from a --to b --reverse
  pando scan mydb -k numbered --hex --keys`,
		Args: exactly(1),
	}
	ks.register(cmd)
	hex.register(cmd)
	part.register(cmd)
	cmd.Flags().BoolVar(&reverse, "reverse", false, "from the highest key to the lowest")
	cmd.Flags().BoolVar(&keysOnly, "keys", false, "print keys without values")
	cmd.Flags().Var(&limit, "limit", "print at most `N` records (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := part.iterOptions(hex, keysOnly)
		if err != nil {
			return err
		}
		return a.readingKeyspace(args[0], ks, func(k *pando.Keyspace) error {
			return walk(cmd.Context(), k, o, reverse, limit, a.pairs(hex).print)
		})
	}
	return cmd
}

// walk calls fn with each record, at most limit of them; its slices are valid for the call. Values are
// nil with KeysOnly, and never nil without it.
func walk(ctx context.Context, k *pando.Keyspace, o *pando.IterOptions, reverse bool, limit limitFlag, fn func(key, value []byte) error) (err error) {
	it := k.Iter(o)
	defer it.Close()
	step := it.Next
	if reverse {
		step = it.Prev
	}
	for n := limitFlag(0); n != limit && step(); n++ {
		value := it.Value()
		if it.Err() != nil {
			break
		}
		if value == nil && !o.KeysOnly {
			value = []byte{}
		}
		if err := fn(it.Key(), value); err != nil {
			return err
		}
		if n%everyRecords == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	return nil
}
