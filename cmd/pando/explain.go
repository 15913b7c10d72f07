package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

func newExplainCommand(a *app) *cobra.Command {
	var (
		database databaseFlag
		find     findFlags
		stats    bool
		all      bool
	)
	printer := documentPrinter{a: a}
	cmd := &cobra.Command{
		Use:   "explain DIR COLLECTION [FILTER|PIPELINE]",
		Short: "Show how a query is carried out",
		Long: `Explain prints the plan that a query gets: its stages under MongoDB's names, those that feed another indented below it, with the
index and its bounds. --stats runs the query and says what that took. --json prints all of MongoDB's explain.`,
		Example: `  pando explain mydb packages '{depends: "zlib1g"}' --stats
  pando explain mydb flights '{carrier: "UA"}' --sort '{dep_delay: -1}' --limit 5
  pando explain mydb flights '[{$match: {month: 7}}, {$sortByCount: "$carrier"}]' --json`,
		Args: between(2, 3),
	}
	database.register(cmd)
	find.register(cmd)
	cmd.Flags().BoolVar(&stats, "stats", false, "run the query, and tell what it read")
	cmd.Flags().BoolVar(&all, "all-plans", false, "with --json, tell of the plans that were not chosen too")
	cmd.Flags().BoolVar(&printer.canonical, "canonical", false, "with --json, print canonical Extended JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := filterArgument(args, jsonArgument)
		if err != nil {
			return err
		}
		o, err := find.options()
		if err != nil {
			return err
		}
		if isArray(filter) && (o.Sort != nil || o.Projection != nil || o.Skip != 0 || o.Limit != 0) {
			return usageError{errors.New("--sort, --projection, --skip and --limit are for a filter: a pipeline has stages for them")}
		}
		switch {
		case all:
			o.Verbosity = "allPlansExecution"
		case stats:
			o.Verbosity = "executionStats"
		}
		return database.reading(cmd.Context(), a, args[0], args[1], func(c *document.Collection) error {
			plan, err := explainAny(cmd.Context(), c, filter, o)
			if err != nil {
				return err
			}
			if a.json {
				return printer.print(plan)
			}
			return printPlan(a.out, plan)
		})
	}
	return cmd
}

// explainAny explains a filter or, when it is an array, a pipeline.
func explainAny(ctx context.Context, c *document.Collection, filter any, o *document.FindOptions) (bson.Raw, error) {
	if !isArray(filter) {
		return c.Explain(ctx, filter, o)
	}
	verbosity := o.Verbosity
	if verbosity == "" {
		verbosity = "queryPlanner"
	}
	return c.ExplainAggregate(ctx, filter, &document.AggregateOptions{Hint: o.Hint, Collation: o.Collation}, verbosity)
}

// printPlan prints an explain for people.
func printPlan(w *bufio.Writer, plan bson.Raw) error {
	if stages, ok := plan.Lookup("stages").ArrayOK(); ok {
		values, err := stages.Values()
		if err != nil {
			return err
		}
		for _, v := range values {
			elements, err := v.Document().Elements()
			if err != nil || len(elements) == 0 {
				return err
			}
			if elements[0].Key() == "$cursor" {
				if err := printPlan(w, elements[0].Value().Document()); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(w, "%s %s\n", elements[0].Key(), relaxed(elements[0].Value()))
		}
		return nil
	}
	winning, ok := plan.Lookup("queryPlanner", "winningPlan").DocumentOK()
	if !ok {
		return printIndented(w, plan)
	}
	if inner, ok := winning.Lookup("queryPlan").DocumentOK(); ok {
		winning = inner
	}
	printStage(w, winning, "")
	if stats, ok := plan.Lookup("executionStats").DocumentOK(); ok {
		fmt.Fprintf(w, "%s returned, %s index keys and %s documents examined, %s ms\n", relaxed(stats.Lookup("nReturned")),
			relaxed(stats.Lookup("totalKeysExamined")), relaxed(stats.Lookup("totalDocsExamined")), relaxed(stats.Lookup("executionTimeMillis")))
	}
	return nil
}

// printIndented prints a document of any shape.
func printIndented(w *bufio.Writer, doc bson.Raw) error {
	text, err := extended(doc, false, true)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// told are the members of a stage that tell what it does, in the order in which they are printed.
var told = []string{"indexName", "direction", "indexBounds", "filter", "sortPattern", "limitAmount", "skipAmount", "transformBy"}

// printStage prints a stage, and those that feed it further to the right.
func printStage(w *bufio.Writer, stage bson.Raw, indent string) {
	name, _ := stage.Lookup("stage").StringValueOK()
	fmt.Fprintf(w, "%s%s", indent, plain(name))
	for _, member := range told {
		v, err := stage.LookupErr(member)
		if err != nil || (member == "direction" && v.StringValue() == "forward") {
			continue
		}
		text := relaxed(v)
		if s, ok := v.StringValueOK(); ok {
			text = plain(s)
		}
		if member == "indexName" {
			fmt.Fprintf(w, " %s", text)
			continue
		}
		fmt.Fprintf(w, " %s=%s", member, text)
	}
	fmt.Fprintln(w)
	if input, ok := stage.Lookup("inputStage").DocumentOK(); ok {
		printStage(w, input, indent+"  ")
	}
	if inputs, ok := stage.Lookup("inputStages").ArrayOK(); ok {
		values, err := inputs.Values()
		if err != nil {
			return
		}
		for _, v := range values {
			if input, ok := v.DocumentOK(); ok {
				printStage(w, input, indent+"  ")
			}
		}
	}
}
