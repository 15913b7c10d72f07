package main

import (
	"errors"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newPutCommand(a *app) *cobra.Command {
	var (
		ks     keyspaceFlag
		layout layoutFlag
		write  writeFlags
		hex    hexFlags
		file   string
	)
	cmd := &cobra.Command{
		Use:   "put DIR KEY [VALUE]",
		Short: "Store a value under a key",
		Long: `Put stores a value under a key, in a database that it creates where there is none. With --file the value is what the
file, or the standard input for -, holds: up to 1 GiB, in little memory.`,
		Example: `  pando put mydb hello world
  pando put mydb logo --file logo.png -k images
  date | pando put mydb now --file -
  pando put mydb -- balance -5`,
		Args: between(2, 3),
	}
	ks.register(cmd)
	layout.register(cmd)
	write.register(cmd)
	hex.register(cmd)
	cmd.Flags().StringVar(&file, "file", "", "store what `FILE` holds; - is the standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fromFile := cmd.Flags().Changed("file")
		if fromFile == (len(args) == 3) {
			return usageError{errors.New("want either a VALUE or --file")}
		}
		key, err := hex.key(args[1])
		if err != nil {
			return err
		}
		var store func(k *pando.Keyspace) error
		if fromFile {
			in, _, err := a.openInput(cmd.Context(), file) // before a database is made for it
			if err != nil {
				return err
			}
			defer in.Close()
			value := interruptible(cmd.Context(), in)
			defer value.Close()
			store = func(k *pando.Keyspace) error { return k.PutReader(key, value) }
		} else {
			value, err := hex.value(args[2])
			if err != nil {
				return err
			}
			store = func(k *pando.Keyspace) error { return k.Put(key, value) }
		}
		return a.using(args[0], write.options(false), func(db *pando.DB) error {
			k, err := ks.made(db, layout)
			if err != nil {
				return err
			}
			return store(k)
		})
	}
	return cmd
}
