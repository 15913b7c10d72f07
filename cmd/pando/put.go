package main

import (
	"errors"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newPutCommand(a *app) *cobra.Command {
	var (
		ks    keyspaceFlag
		write writeFlags
		hex   hexFlags
		file  string
	)
	cmd := &cobra.Command{
		Use:   "put DIR KEY [VALUE]",
		Short: "Store a value under a key",
		Long: `Put stores a value under a key, in a database that it creates where there is none. With --file the value is what the
file, or the standard input for -, holds: up to 1 GiB, in little memory.`,
		Example: `  pando put mydb hello world
  pando put mydb logo --file logo.png -k images
  date | pando put mydb now --file -`,
		Args: between(2, 3),
	}
	ks.register(cmd)
	write.register(cmd)
	hex.register(cmd)
	cmd.Flags().StringVar(&file, "file", "", "store what `FILE` holds; - is the standard input")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		fromFile := cmd.Flags().Changed("file")
		if fromFile == (len(args) == 3) {
			return usageError{errors.New("want either a VALUE or --file")}
		}
		key, err := hex.key(args[1])
		if err != nil {
			return err
		}
		var value []byte
		if !fromFile {
			if value, err = hex.value(args[2]); err != nil {
				return err
			}
		}
		return a.using(args[0], write.options(false), func(db *pando.DB) error {
			k, err := ks.made(db)
			if err != nil {
				return err
			}
			if fromFile {
				return a.putFile(k, key, file)
			}
			return k.Put(key, value)
		})
	}
	return cmd
}

// putFile stores what a file holds.
func (a *app) putFile(k *pando.Keyspace, key []byte, name string) error {
	in, _, err := a.openInput(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return k.PutReader(key, in)
}
