package engine

import (
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/command"
)

func TestAdds(t *testing.T) {
	put := command.Command{Op: command.Put, Keyspace: 1, Key: []byte("p"), Value: []byte("v")}
	apart := command.Command{Op: command.PutApart, Keyspace: 1, Key: []byte("a"), Value: make([]byte, 28)}
	shorter := command.Command{Op: command.Put, Keyspace: 1, Key: []byte("s"), Value: []byte("v")}
	shortens := func(c *command.Command) bool { return string(c.Key) == "s" }
	remove := command.Command{Op: command.Delete, Keyspace: 1, Key: []byte("d")}
	for _, c := range []struct {
		name     string
		commands []command.Command
		want     bool
	}{
		{"nothing", nil, false},
		{"a put", []command.Command{put}, true},
		{"a value apart", []command.Command{apart}, true},
		{"one that becomes shorter", []command.Command{shorter}, false},
		{"very many that become shorter", slices.Repeat([]command.Command{shorter}, shorteningMost+1), true},
		{"a delete", []command.Command{remove}, false},
		{"a key that moves", []command.Command{remove, put}, false},
		{"more puts than deletes", []command.Command{put, remove, apart}, true},
		{"a range that goes", []command.Command{put, put, {Op: command.DeleteRange, Keyspace: 1, Key: []byte("a")}}, false},
		{"a keyspace that goes", []command.Command{put, {Op: command.DropKeyspace, Keyspace: 1}, put}, false},
		{"a note", []command.Command{{Op: command.Note, Keyspace: 1, Key: []byte("n")}}, false},
	} {
		var e command.Encoder
		for _, one := range c.commands {
			e.Add(one)
		}
		if got := adds(e.Payload(), shortens); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
