package main

import (
	"runtime"
	"runtime/debug"

	"github.com/pandodb/pando/internal/root"
	"github.com/spf13/cobra"
)

// versionRow is what is known of this program.
type versionRow struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Format   int    `json:"format"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the format that it writes",
		Example: `  pando version --json`,
		Args:    exactly(0),
		RunE: func(*cobra.Command, []string) error {
			v := versionOf()
			return a.print(v, "pando %s, format %d, %s, %s\n", v.Version, v.Format, v.Go, v.Platform)
		},
	}
}

func versionOf() versionRow {
	v := versionRow{Version: "unknown", Format: root.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
