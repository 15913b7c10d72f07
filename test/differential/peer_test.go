package differential

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server"
	"github.com/pandodb/pando/server/wire"
	"github.com/pandodb/pando/test/mongod"
)

// peer is a connection to one of the two servers.
type peer struct {
	conn   net.Conn
	reader *wire.Reader
	id     int32
}

func dial(addr string) (*peer, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &peer{conn: c, reader: wire.NewReader(c)}, nil
}

// run sends a command and returns the answer, whether ok or an error. It may say on which database; there is one otherwise.
func (p *peer) run(command bson.D) (bson.M, error) {
	if command[len(command)-1].Key != "$db" {
		command = append(command, bson.E{Key: "$db", Value: "differential"})
	}
	body, err := bson.Marshal(command)
	if err != nil {
		return nil, err
	}
	p.id++
	if err := p.conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		return nil, err
	}
	if _, err := p.conn.Write(wire.AppendMsg(nil, p.id, 0, 0, bsoncore.Document(body))); err != nil {
		return nil, err
	}
	m, err := p.reader.Read()
	if err != nil {
		return nil, fmt.Errorf("no answer to %v: %w", command, err)
	}
	var answer bson.M
	return answer, bson.Unmarshal(m.Body, &answer)
}

// ours starts this server in the process of the test.
func ours(t *testing.T) *peer {
	t.Helper()
	s, err := server.Start(server.Config{Dir: filepath.Join(t.TempDir(), "db"), Addr: "127.0.0.1:0", Profile: "relaxed"},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p, err := dial(s.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.conn.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// theirs starts mongod.
func theirs(t *testing.T) *peer {
	t.Helper()
	if os.Getenv("PANDO_MONGOD") == "" && os.Getenv("PANDO_DRIVERS") != "1" {
		t.Skip("neither PANDO_MONGOD names a mongod, nor does PANDO_DRIVERS=1 ask to fetch one")
	}
	// The other engine has codes of its own for the errors of expressions.
	p, err := dial(mongod.Start(t, "--setParameter", "internalQueryForceClassicEngine=true"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.conn.Close() })
	return p
}
