package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the factors of sizes, by name; the names of powers of 1024 may be shortened to one letter.
var units = []struct {
	name   string
	factor int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40},
	{"B", 1}, {"", 1},
}

// sizeFlag is a number of bytes on the command line.
type sizeFlag int64

// String is the default in help texts: none, for a size that the database chooses.
func (s *sizeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return formatSize(int64(*s))
}

// Type is the placeholder in help texts.
func (s *sizeFlag) Type() string { return "SIZE" }

// Set parses a size such as 4096, 64MiB or 1.5G.
func (s *sizeFlag) Set(text string) error {
	for _, u := range units {
		head := len(text) - len(u.name)
		if head < 0 || !strings.EqualFold(text[head:], u.name) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(text[:head]), 64)
		if err != nil || n < 0 || n*float64(u.factor) > math.MaxInt64/2 || math.IsNaN(n) {
			break
		}
		*s = sizeFlag(n * float64(u.factor))
		return nil
	}
	return fmt.Errorf("want a size such as 4096, 64MiB or 1.5GiB")
}

// formatSize writes a number of bytes for people.
func formatSize(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; n >= u.factor {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.factor), u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// countOf writes how many there are of what a noun names.
func countOf(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return formatCount(n) + " " + noun
}

// formatCount writes a number with its thousands apart.
func formatCount(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
