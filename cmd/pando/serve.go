package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/pandodb/pando/server"
)

// settings is what the flags of serve, and its configuration file, say.
type settings struct {
	server.Config
	file      string
	logLevel  string
	logFormat string
	profile   profileFlag
	history   sizeFlag
	memory    sizeFlag
}

func newSettings() *settings { return &settings{Config: server.Config{Version: versionOf().Version}} }

func newServeCommand(a *app) *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "serve --dir DIR",
		Short: "Serve documents to MongoDB's drivers and tools",
		Long: `Serve opens the database in a directory, and creates it where there is none, and answers clients that speak MongoDB's wire
protocol: drivers, mongosh, mongodump and the like. It runs until it is told to end, with Ctrl-C, SIGTERM, SIGHUP or the command shutdown:
then it lets running commands end and settles the database. A second Ctrl-C ends it at once.

The flags of the server may stand in a configuration file in TOML, under their own names without the dashes in front; the
command line wins. On an address that other machines reach, clients have to log in (--auth) unless --no-auth says otherwise.`,
		Example: `  # on localhost:27017, from nothing
  pando serve --dir mydb

  # for other machines, with logins, TLS, health checks and metrics
  pando serve --dir mydb --addr 0.0.0.0:27017 --auth --tls-cert server.pem --http localhost:9090

  # on a Unix socket only, with a quarter of a gigabyte of memory
  pando serve --dir mydb --addr none --socket mydb.sock --memory 256MiB

  # as a service: everything stands in a file
  pando serve --config /etc/pando.toml

  mongosh mongodb://localhost:27017/`,
		Args: exactly(0),
	}
	flags := s.flags()
	cmd.Flags().AddFlagSet(flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.complete(cmd.Context(), flags); errors.Is(err, context.Canceled) {
			return err
		} else if err != nil {
			return usageError{err}
		}
		log, err := s.log(a)
		if err != nil {
			return usageError{err}
		}
		return serve(cmd, s.Config, log)
	}
	return cmd
}

// flags returns the flags that set s. --memory, which all commands have, is one of them here: it may stand in the file.
func (s *settings) flags() *pflag.FlagSet {
	f, c := pflag.NewFlagSet("serve", pflag.ContinueOnError), &s.Config
	f.StringVar(&s.file, "config", "", "configuration `FILE` in TOML")
	f.StringVar(&c.Dir, "dir", "", "`DIR` of the database")
	f.StringVar(&c.Addr, "addr", "", "`HOST:PORT` to listen on, or none (default localhost:27017)")
	f.StringVar(&c.Socket, "socket", "", "`PATH` of a Unix socket to listen on too")
	f.StringVar(&c.HTTP, "http", "", "`HOST:PORT` for /health and /metrics (default: none)")
	f.Var(&s.profile, "profile", "what an acknowledged write survives: durable (power cuts) or relaxed (killed processes)")
	f.Var(&s.memory, "memory", "memory `SIZE` for caches and buffers, such as 64MiB (default: an eighth of the machine's, or of the container's, 64MiB to 1GiB)")
	f.BoolVar(&c.Auth, "auth", false, "clients have to log in")
	f.BoolVar(&c.NoAuth, "no-auth", false, "clients need not log in, although other machines reach the address")
	f.StringVar(&c.TLSCert, "tls-cert", "", "PEM `FILE` with the server's certificate")
	f.StringVar(&c.TLSKey, "tls-key", "", "PEM `FILE` with its key (default: the file of the certificate)")
	f.StringVar(&c.TLSCA, "tls-ca", "", "PEM `FILE` with the authorities of clients' certificates")
	f.IntVar(&c.MaxConnections, "max-connections", 0, "at most `N` open connections (default 20000)")
	f.IntVar(&c.MaxCursors, "max-cursors", 0, "at most `N` open cursors (default 10000)")
	f.StringVar(&c.SetName, "replica-set", "", "`NAME` of the one-member replica set (default rs0)")
	f.StringVar(&c.Advertise, "advertise", "", "`HOST:PORT` that clients are told (default: the address listened on)")
	f.BoolVar(&c.Standalone, "standalone", false, "present a standalone server: no transactions, no change streams")
	f.Var(&s.history, "history", "`SIZE` of the log kept for change streams and the oplog (default 256MiB)")
	f.BoolVar(&c.TestCommands, "test-commands", false, "allow configureFailPoint, for the tests of drivers")
	f.StringVar(&s.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn or error")
	f.StringVar(&s.logFormat, "log-format", "", "`FORMAT`: text, json, or colour for people (default: colour on a terminal that is not dumb, unless NO_COLOR is set; else text)")
	return f
}

// complete reads the configuration file, if there is one, below what the command line says.
func (s *settings) complete(ctx context.Context, flags *pflag.FlagSet) error {
	if s.file != "" {
		f, err := openFile(ctx, s.file, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		text, err := io.ReadAll(interruptible(ctx, f))
		if err != nil {
			return err
		}
		if err := applyConfig(flags, text, "config"); err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
	}
	s.Profile, s.History, s.Memory = s.profile.String(), int64(s.history), int64(s.memory)
	s.NotifySocket = os.Getenv("NOTIFY_SOCKET")
	if s.Dir == "" {
		return fmt.Errorf("--dir says where the database is")
	}
	return nil
}

// log returns a log on the standard error.
func (s *settings) log(a *app) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return nil, fmt.Errorf("log-level is debug, info, warn or error, not %q", s.logLevel)
	}
	format := s.logFormat
	if f, isFile := a.err.(*os.File); format == "" && a.json {
		format = "json"
	} else if format == "" && isFile && term.IsTerminal(int(f.Fd())) && wantsColour() {
		format = "colour"
	}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: level})), nil
	case "colour":
		return slog.New(tint.NewTextHandler(a.err, &tint.Options{Level: level, ReplaceAttr: harmless})), nil
	case "text", "":
		return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})), nil
	}
	return nil, fmt.Errorf("log-format is text, json or colour, not %q", s.logFormat)
}

// harmless is a value of a line in colour without commands to the terminal. The handler quotes what cannot be printed, but takes escapes for
// colours that are meant, and lets them out again, as it does with what only reads like a quoted one; and values have texts of clients in them.
func harmless(_ []string, attr slog.Attr) slog.Attr {
	if kind := attr.Value.Kind(); kind != slog.KindString && kind != slog.KindAny {
		return attr
	}
	text := attr.Value.String()
	plain := strings.NewReplacer("\x1b", "^[", `\x1b`, `\x1B`).Replace(text)
	if plain == text {
		return attr
	}
	return slog.String(attr.Key, plain)
}

// wantsColour reports whether nothing in the environment says that colours are not wanted, or not understood.
func wantsColour() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// serve runs until the command is told to end.
func serve(cmd *cobra.Command, c server.Config, log *slog.Logger) error {
	defer letGather(garbageFor(c.Memory))()
	ctx, end := context.WithCancel(cmd.Context())
	defer end()
	c.Shutdown = end
	if c.Addr == "none" && c.Advertise == "" && c.Socket != "" { // clients have directories of their own
		var err error
		if c.Advertise, err = filepath.Abs(c.Socket); err != nil {
			return err
		}
	}
	s, err := server.Start(c, log)
	if err != nil {
		return err
	}
	<-ctx.Done()
	log.Info("shutting down")
	return s.Close()
}
