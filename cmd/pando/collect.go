package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

// collected sums up what was brought into a collection.
type collected struct {
	Collection         string  `json:"collection"`
	Documents          int64   `json:"documents"`
	Duplicates         int64   `json:"duplicates,omitempty"`
	Seconds            float64 `json:"seconds"`
	DocumentsPerSecond float64 `json:"documentsPerSecond"`
	Holds              int64   `json:"holds"` // documents in the collection afterwards
}

// collector brings a file into a collection: what a loader is for keyspaces.
type collector struct {
	loader         *loader
	database       databaseFlag
	collection     string
	stored         formatFlag
	skipDuplicates bool
}

func (c *collector) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.collection, "collection", "", "store documents in the collection `NAME`, not records in a keyspace")
	c.database.register(cmd)
	cmd.Flags().Var(&c.stored, "storage", "how a new collection stores its documents: template, bson or json")
	cmd.Flags().BoolVar(&c.skipDuplicates, "skip-duplicates", false, "with --collection, leave out documents whose _id, or entry of a unique index, is there")
}

// run stores the documents of a file, and prints what that took.
func (c *collector) run(ctx context.Context, dir string) error {
	l := c.loader
	src, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer src.close()
	next, stop := iter.Pull2(batches(src.chunks))
	defer stop()
	docs, err, _ := next()
	if err != nil {
		return fmt.Errorf("%s: %w", l.file, err)
	}
	sum := collected{Collection: string(c.database) + "." + c.collection}
	err = l.a.writingStore(dir, l.write.options(false), func(s *document.Store) error {
		target, err := s.Database(string(c.database)).Collection(ctx, c.collection, &document.CollectionOptions{Format: document.Format(c.stored)})
		if err != nil {
			return err
		}
		for ; err == nil && docs != nil; docs, err, _ = next() {
			if err = c.store(ctx, target, docs, &sum); err != nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w (stored before: %s)", l.file, err, countOf(sum.Documents, "document"))
		}
		sum.Holds, err = target.Count(ctx, nil, nil)
		return err
	})
	if err != nil {
		return err
	}
	sum.Seconds = src.finish().Seconds()
	sum.DocumentsPerSecond = float64(sum.Documents) / sum.Seconds
	skipped := ""
	if sum.Duplicates > 0 {
		skipped = fmt.Sprintf(" (%s left out)", formatCount(sum.Duplicates))
	}
	return l.a.print(sum, "%s%s in %.2f s (%s documents/s); collection %s holds %s\n", countOf(sum.Documents, "document"), skipped,
		sum.Seconds, formatCount(int64(sum.DocumentsPerSecond)), sum.Collection, formatCount(sum.Holds))
}

// store commits a batch, and counts it.
func (c *collector) store(ctx context.Context, target *document.Collection, docs []bson.Raw, sum *collected) error {
	n, err := target.InsertMany(ctx, docs, &document.InsertOptions{Unordered: c.skipDuplicates, Ordered: !c.skipDuplicates})
	var failed document.WriteErrors
	if errors.As(err, &failed) {
		err = nil
		for _, f := range failed {
			if !c.skipDuplicates || document.CodeOf(f.Err) != document.DuplicateKey {
				err = fmt.Errorf("record %d: %w", sum.Documents+sum.Duplicates+int64(f.Index)+1, f.Err)
				break
			}
		}
	}
	if err == nil {
		sum.Duplicates += int64(len(docs) - n)
	}
	sum.Documents += int64(n)
	return err
}

// formatFlag is a format of stored documents on the command line.
type formatFlag document.Format

// formats are the names of the formats.
func formats() map[string]document.Format {
	return map[string]document.Format{"template": document.Template, "bson": document.BSON, "json": document.AsJSON}
}

// String is the default in help texts.
func (f *formatFlag) String() string {
	for name, format := range formats() {
		if format == document.Format(*f) {
			return name
		}
	}
	return ""
}

// Type is the placeholder in help texts.
func (f *formatFlag) Type() string { return "FORMAT" }

// Set parses a format.
func (f *formatFlag) Set(text string) error {
	format, ok := formats()[text]
	if !ok {
		return errors.New("want template, bson or json")
	}
	*f = formatFlag(format)
	return nil
}
