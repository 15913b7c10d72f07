package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/pandodb/pando/server"
)

// settingsOf returns what a command line says, with a configuration file below it.
func settingsOf(t *testing.T, file string, args ...string) (*settings, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pando.toml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSettings()
	flags := s.flags()
	if err := flags.Parse(append([]string{"--config", name}, args...)); err != nil {
		t.Fatal(err)
	}
	return s, s.complete(context.Background(), flags)
}

// documented returns the configuration file that docs/operating.md shows.
func documented(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```toml\n")
	block, _, _ := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/operating.md has no configuration file")
	}
	return block
}

// every is a setting of each kind that differs from its default, as flags and as what they lead to.
var every = map[string]string{
	"dir": "d", "addr": "localhost:1", "socket": "s", "http": "localhost:2", "profile": "relaxed", "memory": "64MiB", "auth": "true",
	"no-auth": "true", "tls-cert": "c", "tls-key": "k", "tls-ca": "a", "max-connections": "3", "max-cursors": "4", "replica-set": "r",
	"advertise": "h:5", "standalone": "true", "history": "1GiB", "test-commands": "true", "log-level": "debug", "log-format": "json",
}

func wantEvery(t *testing.T, s *settings) {
	t.Helper()
	want := server.Config{
		Dir: "d", Addr: "localhost:1", Socket: "s", HTTP: "localhost:2", Profile: "relaxed", Memory: 64 << 20, Auth: true, NoAuth: true,
		TLSCert: "c", TLSKey: "k", TLSCA: "a", MaxConnections: 3, MaxCursors: 4, SetName: "r", Advertise: "h:5", Standalone: true,
		History: 1 << 30, TestCommands: true, NotifySocket: s.NotifySocket, Version: s.Version,
	}
	if diff := cmp.Diff(want, s.Config); diff != "" {
		t.Error(diff)
	}
	if s.logLevel != "debug" || s.logFormat != "json" {
		t.Errorf("the log has level %q and format %q", s.logLevel, s.logFormat)
	}
}

// TestEverySettingInTheFile: what may stand on the command line may stand in the file, and means the same.
func TestEverySettingInTheFile(t *testing.T) {
	var file strings.Builder
	newSettings().flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "config" {
			return
		}
		v, known := every[f.Name]
		if !known {
			t.Errorf("no value for %s", f.Name)
		}
		if kind := f.Value.Type(); kind != "bool" && kind != "int" {
			v = "'" + v + "'"
		}
		file.WriteString(f.Name + " = " + v + "\n")
	})
	s, err := settingsOf(t, file.String())
	if err != nil {
		t.Fatal(err)
	}
	wantEvery(t, s)
}

// TestTheDocumentedFile: docs/operating.md names every setting, with its default where there is one.
func TestTheDocumentedFile(t *testing.T) {
	text := documented(t)
	s, err := settingsOf(t, text)
	if err != nil {
		t.Fatal(err)
	}
	s.flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && !strings.Contains("\n"+text, "\n"+f.Name+" = ") && !strings.Contains(text, "\n# "+f.Name+" = ") {
			t.Errorf("%s is missing", f.Name)
		}
	})
	if _, err := settingsOf(t, strings.ReplaceAll(text, "\n# ", "\n")); err != nil {
		t.Errorf("with what is commented out: %v", err)
	}
}

// TestFileWithAByteOrderMark: some editors put one in front.
func TestFileWithAByteOrderMark(t *testing.T) {
	s, err := settingsOf(t, "\ufeffdir = 'd'\r\nauth = true\r\n")
	if err != nil || s.Dir != "d" || !s.Auth {
		t.Errorf("%+v, %v", s.Config, err)
	}
	if _, err := settingsOf(t, "\ufeff\nnothing = 1"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}

// TestFlagsOverrideTheFile: whatever the file says, the command line wins.
func TestFlagsOverrideTheFile(t *testing.T) {
	const other = `
dir = "other"
addr = "other"
socket = "other"
http = "other"
profile = "durable"
memory = 1048576
auth = false
no-auth = false
tls-cert = "other"
tls-key = "other"
tls-ca = "other"
max-connections = 99
max-cursors = 99
replica-set = "other"
advertise = "other"
standalone = false
history = "5MiB"
test-commands = false
log-level = "error"
log-format = "text"
`
	var args []string
	for name, v := range every {
		if !strings.Contains(other, "\n"+name+" = ") {
			t.Errorf("%s is not in the file", name)
		}
		args = append(args, "--"+name+"="+v)
	}
	s, err := settingsOf(t, other, args...)
	if err != nil {
		t.Fatal(err)
	}
	wantEvery(t, s)
	if s, err = settingsOf(t, "dir = 'd'\nauth = true", "--auth=false"); err != nil || s.Auth {
		t.Errorf("a flag that is switched off: auth is %t, %v", s.Auth, err)
	}
}

// TestConfigRefused: what is wrong in a file is said with its line.
func TestConfigRefused(t *testing.T) {
	for _, test := range []struct{ name, text, says string }{
		{"a name that is not known", "dir = 'd'\n\ncolour = 'red'", `line 3: there is no setting "colour"`},
		{"the file itself", "config = 'x'", `line 1: there is no setting "config"`},
		{"a flag of all commands", "json = true", `line 1: there is no setting "json"`},
		{"a table", "dir = 'd'\n[dir]", "line 2"},
		{"a table that is not known", "dir = 'd'\n[net]\nport = 1", `line 2: there is no setting "net"`},
		{"a dotted name", "dir.x = 'd'", `line 1: there is no setting "dir"`},
		{"not TOML", "auth = true\ndir = ", "line 2"},
		{"a name twice", "dir = 'd'\ndir = 'e'", "line 2"},
		{"text for a number", "max-cursors = '5'", "line 1: max-cursors: want a whole number"},
		{"text for a switch", "\nauth = 'yes'", "line 2: auth: want true or false"},
		{"a number for text", "dir = 5", "line 1: dir: want a string"},
		{"a list", "addr = ['a', 'b']", "line 1: addr: want a string"},
		{"a size that is none", "memory = 'much'", "line 1: "},
		{"a negative size", "memory = -1", "line 1: "},
		{"a profile that is not known", "profile = 'fast'", `line 1: --profile: want durable or relaxed, not "fast"`},
		{"no directory", "auth = true", "--dir says where"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := settingsOf(t, test.text)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q is wanted: %v", test.says, err)
			}
		})
	}
	s := newSettings()
	for _, bad := range []settings{{logLevel: "loud"}, {logLevel: "info", logFormat: "xml"}} {
		s.logLevel, s.logFormat = bad.logLevel, bad.logFormat
		if _, err := s.log(&app{err: os.Stderr}); err == nil || !strings.Contains(err.Error(), "is ") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
