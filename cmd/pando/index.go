package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

func newIndexCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index COMMAND DIR COLLECTION ...",
		Short: "Create, list and drop indexes of a collection",
		Long:  `Index works on the secondary indexes of a collection of documents.`,
		Example: `  pando index create mydb users '{email: 1}' --unique
  pando index list mydb users
  pando index drop mydb users email_1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("index wants create, list or drop")}
			}
			return usageError{fmt.Errorf("there is no command %q of index: want create, list or drop", args[0])}
		},
		Run: func(*cobra.Command, []string) {},
	}
	cmd.AddCommand(newIndexCreateCommand(a), newIndexListCommand(a), newIndexDropCommand(a))
	return cmd
}

// indexFlags are the options of an index.
type indexFlags struct {
	cmd                          *cobra.Command
	name, partial, collation     string
	wildcardProjection           string
	unique, sparse, hidden, spec bool
	ttl                          int32
}

func (f *indexFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().StringVar(&f.name, "name", "", "`NAME` of the index (default: made from the keys, such as email_1)")
	cmd.Flags().BoolVar(&f.unique, "unique", false, "refuse documents with the same values as another")
	cmd.Flags().BoolVar(&f.sparse, "sparse", false, "leave out documents that have none of the fields")
	cmd.Flags().BoolVar(&f.hidden, "hidden", false, "keep it up to date, but do not use it")
	cmd.Flags().StringVar(&f.partial, "partial", "", "`FILTER` of the documents that are in the index")
	cmd.Flags().Int32Var(&f.ttl, "ttl", 0, "delete documents so many `SECONDS` after the date in the field")
	cmd.Flags().StringVar(&f.collation, "collation", "", "`COLLATION` of strings, such as {locale: \"en\", strength: 2}")
	cmd.Flags().StringVar(&f.wildcardProjection, "wildcard-projection", "", "`FIELDS` that the wildcard takes in")
	cmd.Flags().BoolVar(&f.spec, "spec", false, "KEYS is a whole specification, {key: {...}, unique: true, ...}")
}

// specification returns what createIndexes of MongoDB would be told.
func (f *indexFlags) specification(keys string) (bson.Raw, error) {
	if f.spec {
		for _, name := range []string{"name", "unique", "sparse", "hidden", "partial", "ttl", "collation", "wildcard-projection"} {
			if f.cmd.Flags().Changed(name) {
				return nil, usageError{fmt.Errorf("--%s does not go with --spec: it belongs into the specification", name)}
			}
		}
		return rawArgument("the specification", keys)
	}
	key, err := rawArgument("the keys", keys)
	if err != nil {
		return nil, err
	}
	spec := bson.D{{Key: "key", Value: key}, {Key: "name", Value: f.name}}
	if f.name == "" {
		if spec[1].Value, err = indexNameOf(key); err != nil {
			return nil, usageError{err}
		}
	}
	for name, set := range map[string]bool{"unique": f.unique, "sparse": f.sparse, "hidden": f.hidden} {
		if set {
			spec = append(spec, bson.E{Key: name, Value: true})
		}
	}
	for _, o := range []struct{ flag, name, text string }{
		{"--partial", "partialFilterExpression", f.partial}, {"--collation", "collation", f.collation},
		{"--wildcard-projection", "wildcardProjection", f.wildcardProjection},
	} {
		if o.text == "" {
			continue
		}
		doc, err := rawArgument(o.flag, o.text)
		if err != nil {
			return nil, err
		}
		spec = append(spec, bson.E{Key: o.name, Value: doc})
	}
	if f.cmd.Flags().Changed("ttl") {
		spec = append(spec, bson.E{Key: "expireAfterSeconds", Value: f.ttl})
	}
	return bson.Marshal(spec)
}

// indexNameOf returns the name that MongoDB's tools give to an index: fields and directions, joined.
func indexNameOf(keys bson.Raw) (string, error) {
	elements, err := keys.Elements()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, e := range elements {
		direction := e.Value().String()
		if text, ok := e.Value().StringValueOK(); ok {
			direction = text
		} else if n, ok := e.Value().AsInt64OK(); ok {
			direction = fmt.Sprint(n)
		}
		parts = append(parts, e.Key()+"_"+direction)
	}
	return strings.Join(parts, "_"), nil
}

// rawArgument reads a document of the command line.
func rawArgument(what, text string) (bson.Raw, error) {
	if text == "" {
		return nil, usageError{fmt.Errorf("%s: nothing is no document", what)}
	}
	v, err := documentArgument(what, text)
	if err != nil {
		return nil, err
	}
	extended, _ := v.(document.JSON)
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(extended), false, &raw); err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", what, err)}
	}
	return raw, nil
}

func newIndexCreateCommand(a *app) *cobra.Command {
	var (
		database databaseFlag
		write    writeFlags
		flags    indexFlags
	)
	cmd := &cobra.Command{
		Use:   "create DIR COLLECTION KEYS",
		Short: "Make an index",
		Long: `Create makes an index over fields of a collection and prints its name. KEYS are fields with 1 (ascending), -1 (descending),
"hashed" or "2dsphere"; {"$**": 1} is a wildcard. A collection that is not there is made. An interrupted build is undone when the
database is opened next.`,
		Example: `  pando index create mydb users '{email: 1}' --unique
  pando index create mydb flights '{carrier: 1, dep_delay: -1}' --partial '{dep_delay: {$gt: 0}}'
  pando index create mydb sessions '{seen: 1}' --ttl 3600
  pando index create mydb users '{key: {name: 1}, name: "by name", sparse: true}' --spec`,
		Args: exactly(3),
	}
	database.register(cmd)
	write.register(cmd)
	flags.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec, err := flags.specification(args[2])
		if err != nil {
			return err
		}
		return a.writingStore(args[0], write.options(true), func(s *document.Store) error {
			bar := a.counter("indexing")
			defer bar.end()
			names, err := s.Database(string(database)).Lookup(args[1]).CreateIndexes(cmd.Context(), []bson.Raw{spec}, bar.of)
			if err != nil {
				return err
			}
			bar.end()
			return a.print(map[string]string{"index": names[0]}, "%s\n", plain(names[0]))
		})
	}
	return cmd
}

// indexRow is what is printed of an index.
type indexRow struct {
	Name     string   `bson:"name"`
	Spec     bson.Raw `bson:"spec"`
	Ready    bool     `bson:"ready"`
	Multikey bool     `bson:"multikey"`
}

func newIndexListCommand(a *app) *cobra.Command {
	var database databaseFlag
	printer := documentPrinter{a: a}
	cmd := &cobra.Command{
		Use:     "list DIR COLLECTION",
		Short:   "List the indexes of a collection",
		Long:    `List prints the name, keys and options of each index; multikey ones hold several entries for documents with arrays.`,
		Example: `  pando index list mydb packages`,
		Args:    exactly(2),
	}
	database.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return database.reading(cmd.Context(), a, args[0], args[1], func(c *document.Collection) error {
			list, err := c.Indexes(cmd.Context())
			if err != nil {
				return err
			}
			cells := [][]string{{"NAME", "KEYS", "OPTIONS"}}
			for _, i := range list {
				if a.json {
					if err := printer.print(indexRow(i)); err != nil {
						return err
					}
					continue
				}
				cells = append(cells, []string{i.Name, indexKeys(i.Spec), strings.Join(indexTraits(i), ", ")})
			}
			if a.json {
				return nil
			}
			return a.table(cells)
		})
	}
	return cmd
}

// indexKeys returns the pattern of an index as text.
func indexKeys(spec bson.Raw) string { return relaxed(spec.Lookup("key")) }

// indexTraits lists what is special about an index.
func indexTraits(i document.IndexInfo) []string {
	elements, err := i.Spec.Elements()
	if err != nil {
		return []string{err.Error()}
	}
	var traits []string
	for _, e := range elements {
		switch name := e.Key(); name {
		case "v", "key", "name", "ns":
		default:
			if yes, ok := e.Value().BooleanOK(); ok && yes {
				traits = append(traits, name)
			} else {
				traits = append(traits, name+" "+relaxed(e.Value()))
			}
		}
	}
	if i.Multikey {
		traits = append(traits, "multikey")
	}
	if !i.Ready {
		traits = append(traits, "being built")
	}
	return traits
}

// relaxed returns a value as relaxed Extended JSON.
func relaxed(v bson.RawValue) string {
	text, err := extended(bson.D{{Key: "v", Value: v}}, false, false)
	if err != nil {
		return plain(v.String())
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}")
}

func newIndexDropCommand(a *app) *cobra.Command {
	var (
		database databaseFlag
		write    writeFlags
	)
	cmd := &cobra.Command{
		Use:   "drop DIR COLLECTION INDEX",
		Short: "Drop an index",
		Long:  `Drop drops the index with a name, or with a pattern of keys; "*" drops all but that of _id.`,
		Example: `  pando index drop mydb users email_1
  pando index drop mydb users '{email: 1}'`,
		Args: exactly(3),
	}
	database.register(cmd)
	write.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		which, err := hintArgument(args[2])
		if err != nil {
			return err
		}
		return database.writing(cmd.Context(), a, args[0], args[1], write.options(true), func(c *document.Collection) error {
			return c.DropIndex(cmd.Context(), which)
		})
	}
	return cmd
}
