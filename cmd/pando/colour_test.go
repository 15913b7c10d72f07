package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestLogInColourHasNoEscapesOfOthers: what clients say reaches the log as text, never as commands to the terminal that shows it.
func TestLogInColourHasNoEscapesOfOthers(t *testing.T) {
	const title = "]0;hello\a"
	for name, value := range map[string]any{
		"an escape":                 "a \x1b" + title,
		"an escape in an error":     errors.New("no user \x1b" + title),
		"an escape in a list":       []string{"a", "\x1b" + title},
		"the text of an escape":     `a \x1b` + title,
		"a control character of C1": "a \u009b1m",
		"a new line":                "a\nb",
	} {
		var out bytes.Buffer
		s := newSettings()
		s.logLevel, s.logFormat = "info", "colour"
		log, err := s.log(&app{err: &out})
		if err != nil {
			t.Fatal(err)
		}
		log.With("first", value).Info("hello", "second", value)
		text := out.String()
		if strings.Contains(text, "\x1b]") || strings.ContainsAny(text, "\a\u009b") || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: %q", name, text)
		}
	}
}
