package mongo

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of commands into docs/mongodb.md")

const (
	tableStart = "<!-- commands: made by go test ./server/mongo -run TestTheTableOfCommands -update -->\n"
	tableEnd   = "<!-- end of commands -->\n"
	tablePage  = "../../docs/mongodb.md"
)

// TestTheTableOfCommands holds docs/mongodb.md to the commands that there are.
func TestTheTableOfCommands(t *testing.T) {
	page, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableStart)
	old, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table of commands", tablePage)
	}
	fresh := tableOfCommands()
	if old == fresh {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is not that of the commands: go test ./server/mongo -run TestTheTableOfCommands -update", tablePage)
	}
	if err := os.WriteFile(tablePage, []byte(before+tableStart+fresh+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func tableOfCommands() string {
	table := commandTable()
	var names []string
	for name, c := range table {
		if name == c.name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("\n| command | does | in transactions | Stable API |\n| --- | --- | --- | --- |\n")
	mark := map[bool]string{true: "yes", false: ""}
	for _, name := range names {
		c := table[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, c.help, mark[c.inTxn], mark[c.stable])
	}
	b.WriteString("\n")
	return b.String()
}
