package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/pandodb/pando/document"
)

// findFlags are the flags of commands that find documents.
type findFlags struct {
	sort, projection, hint, collation string
	skip, limit                       int64
}

func (f *findFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.sort, "sort", "", "`ORDER`: fields with 1 or -1, such as {year: 1, delay: -1}")
	cmd.Flags().Int64Var(&f.skip, "skip", 0, "leave out the first `N`")
	cmd.Flags().Int64Var(&f.limit, "limit", 0, "at most `N` documents; 0: all")
	cmd.Flags().StringVar(&f.projection, "projection", "", "`FIELDS` to print, such as {carrier: 1, _id: 0}")
	cmd.Flags().StringVar(&f.hint, "hint", "", "`INDEX` to use: its name or its keys; {$natural: 1} is none")
	cmd.Flags().StringVar(&f.collation, "collation", "", "`COLLATION` of strings, such as {locale: \"de\", strength: 2}")
}

// options understands the flags.
func (f *findFlags) options() (*document.FindOptions, error) {
	if f.skip < 0 || f.limit < 0 {
		return nil, usageError{errors.New("--skip and --limit are not negative")}
	}
	o := &document.FindOptions{Skip: f.skip, Limit: f.limit}
	var errs [4]error
	o.Sort, errs[0] = documentArgument("--sort", f.sort)
	o.Projection, errs[1] = documentArgument("--projection", f.projection)
	o.Hint, errs[2] = hintArgument(f.hint)
	o.Collation, errs[3] = documentArgument("--collation", f.collation)
	return o, errors.Join(errs[:]...)
}

// filterArgument reads what may be the last of the arguments.
func filterArgument(args []string, read func(what, text string) (any, error)) (any, error) {
	if len(args) < 3 {
		return nil, nil
	}
	return read("the filter", args[2])
}

func newFindCommand(a *app) *cobra.Command {
	var (
		database databaseFlag
		find     findFlags
		count    bool
	)
	printer := documentPrinter{a: a}
	cmd := &cobra.Command{
		Use:   "find DIR COLLECTION [FILTER]",
		Short: "Print the documents that match a filter",
		Long: `Find prints documents of a collection as Extended JSON, each on its line: those that match the filter, or all. The filter is
MongoDB's, as Extended JSON or as one writes it in a shell: unquoted names, single quotes, ObjectId("..."), ISODate("...").`,
		Example: `  pando find mydb flights '{carrier: "UA", dep_delay: {$gt: 60}}' --sort '{dep_delay: -1}' --limit 3
  pando find mydb packages '{depends: "zlib1g"}' --projection '{version: 1}'
  pando find mydb flights '{month: 7}' --count`,
		Args: between(2, 3),
	}
	database.register(cmd)
	find.register(cmd)
	printer.register(cmd)
	cmd.Flags().BoolVar(&count, "count", false, "print how many there are instead")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := filterArgument(args, documentArgument)
		if err != nil {
			return err
		}
		o, err := find.options()
		if err != nil {
			return err
		}
		return database.reading(cmd.Context(), a, args[0], args[1], func(c *document.Collection) error {
			if count {
				o.Sort, o.Projection = nil, nil
				n, err := c.Count(cmd.Context(), filter, o)
				if err != nil {
					return err
				}
				return a.print(map[string]int64{"count": n}, "%d\n", n)
			}
			cursor, err := c.OpenFind(cmd.Context(), filter, o)
			if err != nil {
				return err
			}
			return printer.printAll(cmd.Context(), cursor)
		})
	}
	return cmd
}
