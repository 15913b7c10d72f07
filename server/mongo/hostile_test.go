package mongo

import (
	"errors"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// TestLyingHeaders: a header that cannot be true ends its connection without an answer; others do not notice.
func TestLyingHeaders(t *testing.T) {
	s := newServer(t, nil)
	other := dial(t, s)
	for _, test := range []struct {
		name   string
		header []byte
	}{
		{"a length below that of a header", []byte{15, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0}},
		{"a negative length", []byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0}},
		{"more than 48 MB", []byte{0, 0, 0, 0x40, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0}},
		{"another protocol", []byte("GET / HTTP/1.1\r\n")},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, s)
			c.must("admin", bson.D{{Key: "ping", Value: 1}})
			if _, err := c.conn.Write(test.header); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Logf("the connection ended while it was written to: %v", err)
			}
			if m, err := wire.NewReader(c.conn).Read(); err == nil {
				t.Errorf("an answer: %v", m)
			}
			other.must("admin", bson.D{{Key: "ping", Value: 1}})
		})
	}
}

// TestCursorHoarding: who opens cursors and never reads them gets as many as there may be, and others can still work.
func TestCursorHoarding(t *testing.T) {
	const most = 5
	s := newServer(t, &Options{MaxCursors: most})
	c := dial(t, s)
	c.must("d", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}, bson.D{}, bson.D{}}}})
	hoard := bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}}
	for range most {
		c.must("d", hoard)
	}
	c.refused("d", hoard, 261)
	if open, _, _ := s.cursors.counts(); open != most {
		t.Errorf("%d cursors are open", open)
	}
	dial(t, s).must("d", bson.D{{Key: "find", Value: "c"}})
}

// TestIdleConnections: connections that are silent cost nobody else anything, and end with the server.
func TestIdleConnections(t *testing.T) {
	s := newServer(t, nil)
	for range 2000 {
		dial(t, s)
	}
	dial(t, s).must("admin", bson.D{{Key: "ping", Value: 1}})
}

// A message may hold ten million fields, and a command that takes any, or that is not known, kept each of them.
func TestCommandsHaveSoManyFields(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for _, name := range []string{"serverStatus", "unheardOf"} {
		command := cmd(name, 1)
		for i := range maxFields - 2 { // beside the name, and the database
			command = append(command, bson.E{Key: "f" + itoa(i), Value: nil})
		}
		if code := codeIn(c.run("admin", command)); code == int32(document.FailedToParse) {
			t.Errorf("%s with %d fields is refused", name, maxFields)
		}
		c.refused("admin", append(command, bson.E{Key: "more", Value: nil}), int32(document.FailedToParse))
	}
}
