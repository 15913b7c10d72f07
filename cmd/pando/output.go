package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/pandodb/pando/internal/importer"
	"github.com/spf13/cobra"
)

// newEncoder returns a JSON encoder that leaves text as it is, but for control characters.
func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(jsonWriter{w})
	e.SetEscapeHTML(false)
	return e
}

// print prints v as JSON when machines read, else the text.
func (a *app) print(v any, format string, args ...any) error {
	if a.json {
		return newEncoder(a.out).Encode(v)
	}
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// table prints rows of cells in columns. A cell that would break its line, such as a name with a newline in it, is quoted.
func (a *app) table(rows [][]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if strings.ContainsFunc(cell, unicode.IsControl) {
				cell = strconv.Quote(cell)
			}
			cells[i] = cell
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// hexFlags say which bytes are hexadecimal on the command line and in the output.
type hexFlags struct{ keys, values bool }

func (h *hexFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&h.keys, "hex", false, "keys are read and printed as hex")
	cmd.Flags().BoolVar(&h.values, "hex-values", false, "values are read and printed as hex")
}

// key reads a key of the command line.
func (h *hexFlags) key(text string) ([]byte, error) { return decodeText("key", text, h.keys) }

// value reads a value of the command line.
func (h *hexFlags) value(text string) ([]byte, error) { return decodeText("value", text, h.values) }

func decodeText(what, text string, isHex bool) ([]byte, error) {
	if !isHex {
		return []byte(text), nil
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s %q is not hex: %w", what, text, err)}
	}
	return b, nil
}

// pairPrinter prints one record after the other.
type pairPrinter struct {
	a       *app
	hex     hexFlags
	encoder *json.Encoder
	line    []byte
}

func (a *app) pairs(h hexFlags) *pairPrinter {
	return &pairPrinter{a: a, hex: h, encoder: newEncoder(a.out)}
}

// print prints a record; a nil value is left out.
func (p *pairPrinter) print(key, value []byte) error {
	if p.a.json {
		if p.hex.keys {
			key = hex.AppendEncode(nil, key)
		}
		if p.hex.values && value != nil {
			value = hex.AppendEncode([]byte{}, value)
		}
		return p.encoder.Encode(importer.NewPair(key, value))
	}
	p.line = p.appendText(p.line[:0], key, p.hex.keys)
	if value != nil {
		p.line = append(p.line, '\t')
		p.line = p.appendText(p.line, value, p.hex.values)
	}
	p.line = append(p.line, '\n')
	_, err := p.a.out.Write(p.line)
	return err
}

func (p *pairPrinter) appendText(dst, b []byte, asHex bool) []byte {
	if asHex {
		return hex.AppendEncode(dst, b)
	}
	return append(dst, b...)
}
