package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pandodb/pando/server"
)

func newServeCommand(a *app) *cobra.Command {
	c := server.Config{Version: versionOf().Version}
	var (
		file    string
		level   string
		profile profileFlag
		history sizeFlag
	)
	cmd := &cobra.Command{
		Use:   "serve --dir DIR",
		Short: "Serve documents to MongoDB's drivers and tools",
		Long: `Serve opens the database in a directory, and creates it where there is none, and answers clients that speak MongoDB's wire
protocol: drivers, mongosh, mongodump and the like. It runs until it is told to end, with Ctrl-C or SIGTERM: then it lets
running commands end and settles the database.

The flags of the server may stand in a configuration file in TOML, under their own names without the dashes in front; the
command line wins. On an address that other machines reach, clients have to log in (--auth) unless --no-auth says otherwise.`,
		Example: `  pando serve --dir mydb
  pando serve --dir mydb --addr 0.0.0.0:27017 --auth --tls-cert server.pem --http localhost:9090
  pando serve --config /etc/pando.toml`,
		Args: exactly(0),
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration `FILE` in TOML")
	f.StringVar(&c.Dir, "dir", "", "`DIR` of the database")
	f.StringVar(&c.Addr, "addr", "", "`HOST:PORT` to listen on, or none (default localhost:27017)")
	f.StringVar(&c.Socket, "socket", "", "`PATH` of a Unix socket to listen on too")
	f.StringVar(&c.HTTP, "http", "", "`HOST:PORT` for /health and /metrics (default: none)")
	f.Var(&profile, "profile", "what an acknowledged write survives: durable (power cuts) or relaxed (killed processes)")
	f.BoolVar(&c.Auth, "auth", false, "clients have to log in")
	f.BoolVar(&c.NoAuth, "no-auth", false, "clients need not log in, although other machines reach the address")
	f.StringVar(&c.TLSCert, "tls-cert", "", "PEM `FILE` with the server's certificate")
	f.StringVar(&c.TLSKey, "tls-key", "", "PEM `FILE` with its key (default: the file of the certificate)")
	f.StringVar(&c.TLSCA, "tls-ca", "", "PEM `FILE` with the authorities of clients' certificates")
	f.IntVar(&c.MaxConnections, "max-connections", 0, "open connections (default 20000)")
	f.IntVar(&c.MaxCursors, "max-cursors", 0, "open cursors (default 10000)")
	f.StringVar(&c.SetName, "replica-set", "", "`NAME` of the one-member replica set (default rs0)")
	f.StringVar(&c.Advertise, "advertise", "", "`HOST:PORT` that clients are told (default: the address listened on)")
	f.BoolVar(&c.Standalone, "standalone", false, "present a standalone server: no transactions, no change streams")
	f.Var(&history, "history", "`SIZE` of the log kept for change streams and the oplog (default 256MiB)")
	f.BoolVar(&c.TestCommands, "test-commands", false, "allow configureFailPoint, for the tests of drivers")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("profile") {
			c.Profile = profile.String()
		}
		c.History, c.Memory = int64(history), int64(a.memory)
		config, err := serveConfig(c, file)
		if err != nil {
			return usageError{err}
		}
		log, err := serveLog(a, level)
		if err != nil {
			return usageError{err}
		}
		return serve(cmd, config, log)
	}
	return cmd
}

// serveConfig returns what the command line says, over what the configuration file says.
func serveConfig(flags server.Config, file string) (server.Config, error) {
	c := flags
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, err
		}
		c = server.Config{}
		if err := c.ParseConfig(text); err != nil {
			return c, fmt.Errorf("%s: %w", file, err)
		}
		c = c.Over(flags)
	}
	c.NotifySocket, c.Version = os.Getenv("NOTIFY_SOCKET"), flags.Version
	if c.Dir == "" {
		return c, fmt.Errorf("--dir says where the database is")
	}
	return c, nil
}

// serveLog returns a log on the standard error: for people on a terminal, for machines otherwise.
func serveLog(a *app, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level is debug, info, warn or error, not %q", level)
	}
	if f, ok := a.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) && !a.json {
		return slog.New(tint.NewTextHandler(f, &tint.Options{Level: l})), nil
	}
	if a.json {
		return slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: l})), nil
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: l})), nil
}

// serve runs until the command is told to end.
func serve(cmd *cobra.Command, c server.Config, log *slog.Logger) error {
	s, err := server.Start(c, log)
	if err != nil {
		return err
	}
	<-cmd.Context().Done()
	log.Info("shutting down")
	return s.Close()
}
