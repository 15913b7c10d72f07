package memfs

import (
	"io"
	"io/fs"
	"slices"

	"github.com/pandodb/pando/vfs"
)

// file is an open handle. The lock of its file system guards it.
type file struct {
	fs       *FS
	node     *node
	name     string
	writable bool
	closed   bool
}

// usable says why op cannot be done on the handle, if so.
func (h *file) usable(op string, write bool) error {
	if h.closed {
		return fail(op, h.name, fs.ErrClosed)
	}
	if write && !h.writable {
		return fail(op, h.name, fs.ErrPermission)
	}
	return nil
}

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	if err := h.usable("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, fail("read", h.name, errNegative)
	}
	n := h.node.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *file) WriteAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable("write", true); err != nil {
		return 0, err
	}
	n, err := h.fs.write(h.node, p, off)
	if err != nil {
		err = fail("write", h.name, err)
	}
	return n, err
}

// WritePiecesAt implements vfs.PieceWriter.
func (h *file) WritePiecesAt(pieces [][]byte, off int64) (int, error) {
	return h.WriteAt(slices.Concat(pieces...), off)
}

func (h *file) Size() (int64, error) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	if err := h.usable("stat", false); err != nil {
		return 0, err
	}
	return h.node.size(), nil
}

// Sole implements vfs.Sole. Everything lies in memory.
func (h *file) Sole(int64) bool {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	return h.node.links <= 1
}

func (h *file) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable("truncate", true); err != nil {
		return err
	}
	if err := h.fs.resize(h.node, size); err != nil {
		return fail("truncate", h.name, err)
	}
	return nil
}

func (h *file) Allocate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable("allocate", true); err != nil {
		return err
	}
	if size >= 0 && size <= h.node.size() {
		return nil // space is counted by size, so it is reserved already
	}
	if err := h.fs.resize(h.node, size); err != nil {
		return fail("allocate", h.name, err)
	}
	return nil
}

func (h *file) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable("sync", false); err != nil {
		return err
	}
	h.node.sync()
	return nil
}

// DropUnsynced does what some kernels do when a write-back fails: unsynced pages are marked clean without having reached the
// device. Reads see them still, a later Sync succeeds without writing them, and a crash loses them, unless they are changed
// again. Package faultfs uses it for failed syncs.
func (h *file) DropUnsynced() {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	h.node.drop()
}

func (h *file) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable("close", false); err != nil {
		return err
	}
	h.closed = true
	h.fs.release(h.node)
	return nil
}

// release lets go of what a handle, a mapping or a lock held.
func (f *FS) release(n *node) {
	n.open--
	f.forget(n)
}

func (h *file) Map(length int64) (vfs.Mapping, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable("map", true); err != nil {
		return nil, err
	}
	n := h.node
	if length <= 0 || length > n.size() {
		return nil, fail("map", h.name, fs.ErrInvalid)
	}
	n.load()
	if n.mapped == 0 {
		n.data = alignedCopy(n.data)
	}
	n.mapped++
	n.stored = true
	n.open++
	return &mapping{fs: h.fs, node: n, name: h.name, bytes: n.data[:length:length]}, nil
}

type mapping struct {
	fs    *FS
	node  *node
	name  string
	bytes []byte
}

func (m *mapping) Bytes() []byte { return m.bytes }

// poison is what a closed mapping's memory holds, where a real one would end the process.
const poison = 0xdb

// Close cuts the memory off from the file and poisons it, once no other mapping uses it.
func (m *mapping) Close() error {
	m.fs.mu.Lock()
	defer m.fs.mu.Unlock()
	if m.bytes == nil {
		return fail("unmap", m.name, fs.ErrClosed)
	}
	n := m.node
	n.mapped--
	if n.mapped == 0 {
		old := n.data
		n.data = make([]byte, len(old))
		copyBytes(n.data, old)
		for i := range old {
			old[i] = poison
		}
	}
	m.bytes = nil
	m.fs.release(n)
	return nil
}
