package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

func newAggregateCommand(a *app) *cobra.Command {
	var (
		database databaseFlag
		hint     string
	)
	printer := documentPrinter{a: a}
	cmd := &cobra.Command{
		Use:   "aggregate DIR COLLECTION PIPELINE",
		Short: "Run an aggregation pipeline",
		Long: `Aggregate runs a pipeline of MongoDB's stages over a collection and prints what comes out as Extended JSON, each document on
its line. A pipeline that ends in $out or $merge writes; any other only reads.`,
		Example: `  pando aggregate mydb flights '[{$group: {_id: "$carrier", late: {$avg: "$arr_delay"}}}, {$sort: {late: -1}}]'
  pando aggregate mydb packages '[{$unwind: "$tags"}, {$sortByCount: "$tags"}, {$limit: 5}]'`,
		Args: exactly(3),
	}
	database.register(cmd)
	printer.register(cmd)
	cmd.Flags().StringVar(&hint, "hint", "", "`INDEX` to use: its name or its keys; {$natural: 1} is none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pipeline, writes, err := pipelineArgument(args[2])
		if err != nil {
			return err
		}
		h, err := hintArgument(hint)
		if err != nil {
			return err
		}
		run := func(c *document.Collection) error {
			cursor, err := c.OpenAggregate(cmd.Context(), pipeline, &document.AggregateOptions{Hint: h})
			if err != nil {
				return err
			}
			return printer.printAll(cmd.Context(), cursor)
		}
		if writes {
			return database.writing(cmd.Context(), a, args[0], args[1], pando.Options{MustExist: true}, run)
		}
		return database.reading(cmd.Context(), a, args[0], args[1], run)
	}
	return cmd
}

// pipelineArgument reads a pipeline, and says whether its last stage writes.
func pipelineArgument(text string) (pipeline any, writes bool, err error) {
	if text == "" {
		return nil, false, usageError{errors.New("the pipeline is empty: all documents are []")}
	}
	if pipeline, err = jsonArgument("the pipeline", text); err != nil {
		return nil, false, err
	}
	extended := string(pipeline.(document.JSON))
	if !strings.HasPrefix(extended, "[") {
		extended = "[" + extended + "]" // one stage
	}
	var holder struct {
		Stages []bson.RawValue `bson:"stages"`
	}
	if err := bson.UnmarshalExtJSON([]byte(`{"stages":`+extended+`}`), false, &holder); err != nil {
		return nil, false, usageError{fmt.Errorf("the pipeline: %w", err)}
	}
	for i, stage := range holder.Stages {
		doc, ok := stage.DocumentOK()
		if !ok {
			return nil, false, usageError{fmt.Errorf("the pipeline: stage %d is no document", i+1)}
		}
		first, err := doc.IndexErr(0)
		writes = err == nil && (first.Key() == "$out" || first.Key() == "$merge")
	}
	return document.JSON(extended), writes, nil
}
