package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/vfs/osfs"
)

// standard is the name that means the standard input or output.
const standard = "-"

// openInput opens a file for reading and says how long it is, -1 when that is not known.
func (a *app) openInput(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	if name == standard {
		return io.NopCloser(a.in), -1, nil
	}
	f, err := openFile(ctx, name, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, -1, nil
	}
	return f, info.Size(), nil
}

// openFile opens a file that is there, until ctx ends: who opens a pipe waits for somebody at its other end. That call is left behind.
func openFile(ctx context.Context, name string, flag int) (*os.File, error) {
	type outcome struct {
		file *os.File
		err  error
	}
	came := make(chan outcome, 1)
	go func() {
		f, err := os.OpenFile(name, flag, 0)
		came <- outcome{f, err}
	}()
	select {
	case o := <-came:
		return o.file, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("open %s: %w", name, context.Cause(ctx))
	}
}

// interruptible returns what r gives until ctx ends or it is closed, also while a read waits for input: that read is left behind.
func interruptible(ctx context.Context, r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(context.Cause(ctx)) }) // reads answer so; closing out would be "closed pipe" to them
	go func() {
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err)
	}()
	return out
}

// output is a file that is being written. A file of its final name appears when it is complete, never before.
type output struct {
	io.Writer
	name       string // empty: not a file of ours
	unfinished string // the name that it has until it is complete
	file       *os.File
	buffer     *bufio.Writer
	encoder    io.WriteCloser // nil: plain
}

// partial is what the name of an unfinished file ends in.
const partial = ".partial"

// newFile is who may use a file that was not there before, as far as the umask lets them.
const newFile = 0o666

// createOutput creates a file, or takes the standard output; a name that ends in .gz or .zst is compressed. Of what is there under the name a
// link goes on leading to its file, and the file keeps who may read it.
func (a *app) createOutput(ctx context.Context, name string) (*output, error) {
	if name == standard {
		return &output{Writer: a.out, buffer: a.out}, nil
	}
	if name == "" {
		return nil, usageError{errors.New("no file is named")}
	}
	o := &output{}
	var err error
	switch info, statErr := os.Stat(name); {
	case statErr != nil:
		o.name = name
		err = o.create(newFile)
	case info.Mode().IsRegular():
		err = o.replace(name, info.Mode().Perm())
	default:
		o.file, err = openFile(ctx, name, os.O_WRONLY) // a device or a pipe
	}
	if err != nil {
		return nil, err
	}
	o.buffer = bufio.NewWriterSize(o.file, outputBuffer)
	o.Writer = o.buffer
	switch {
	case strings.HasSuffix(name, ".gz"):
		o.encoder = gzip.NewWriter(o.buffer)
	case strings.HasSuffix(name, ".zst"):
		o.encoder, err = zstd.NewWriter(o.buffer, zstd.WithEncoderConcurrency(1))
	}
	if err != nil {
		return nil, errors.Join(err, o.abandon())
	}
	if o.encoder != nil {
		o.Writer = o.encoder
	}
	return o, nil
}

// isStandardOutput reports whether a name leads to where the standard output goes, as /dev/stdout does, also if that is a file: another one must
// not take its place, for what was written to it before, or is after us, belongs to the same.
func isStandardOutput(name string) bool {
	there, err := os.Stat(name)
	if err != nil {
		return false
	}
	out, err := os.Stdout.Stat()
	return err == nil && os.SameFile(there, out)
}

// create creates the unfinished file, which is nobody else's: neither that of another command that writes to the same name, nor one, or a link
// to one, that somebody has put there. Inside of a database it might take the place of one of its files, ROOT for instance.
func (o *output) create(mode os.FileMode) (err error) {
	whole, err := filepath.Abs(o.name)
	if err != nil {
		return err
	}
	if at := engine.Above(osfs.New(), whole); at != "" {
		return fmt.Errorf("%s would lie inside of a database, where all is in use: %s", o.name, at)
	}
	for err = os.ErrExist; errors.Is(err, os.ErrExist); {
		o.unfinished = fmt.Sprintf("%s.%08x%s", o.name, rand.Uint32(), partial)
		o.file, err = os.OpenFile(o.unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	}
	return err
}

// replace creates the file that is to take the place of one with a mode.
func (o *output) replace(name string, mode os.FileMode) (err error) {
	if o.name, err = filepath.EvalSymlinks(name); err != nil {
		return err
	}
	if err = o.create(mode); err != nil {
		return err
	}
	if err = o.file.Chmod(mode); err != nil { // which the umask may have narrowed
		return errors.Join(err, o.abandon())
	}
	return nil
}

// finish completes the file.
func (o *output) finish() error {
	var err error
	if o.encoder != nil {
		err = o.encoder.Close()
	}
	if err = errors.Join(err, o.buffer.Flush()); err != nil {
		return errors.Join(err, o.abandon())
	}
	if o.file == nil {
		return nil
	}
	if o.name == "" {
		return o.file.Close()
	}
	if err := errors.Join(o.file.Sync(), o.file.Close()); err != nil {
		return errors.Join(err, os.Remove(o.unfinished))
	}
	if err := os.Rename(o.unfinished, o.name); err != nil {
		return errors.Join(err, os.Remove(o.unfinished))
	}
	return nil
}

// abandon removes the unfinished file.
func (o *output) abandon() error {
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	if o.name != "" {
		err = errors.Join(err, os.Remove(o.unfinished))
	}
	return err
}

// isVacant reports whether dir is absent or empty.
func isVacant(dir string) (bool, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return false, fmt.Errorf("%s is a file, not a directory: %w", dir, pando.ErrNotDatabase)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, err
}
