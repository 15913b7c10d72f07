package faultfs

import (
	"io"
	"slices"

	"github.com/pandodb/pando/vfs"
)

// defaultShift is how far a misdirected write goes astray: to the next page.
const defaultShift = 4096

type file struct {
	fs    *FS
	base  vfs.File
	name  string
	state *fileState
	owed  error // of a DropSync through another handle; FS.mu guards it
}

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	rule, err := h.fs.begin(OpReadAt, h.name)
	if err != nil {
		return 0, err
	}
	if rule != nil && rule.Fault == ShortRead {
		n, err := h.base.ReadAt(p[:len(p)/2], off)
		if err == nil || err == io.EOF {
			err = failed(OpReadAt, h.name, rule.cause())
		}
		return n, err
	}
	n, err := h.base.ReadAt(p, off)
	if rule == nil || n == 0 {
		return n, err
	}
	switch rule.Fault {
	case FlipBit:
		bit := rule.Bit % (int64(n) * 8)
		p[bit/8] ^= 1 << (bit % 8)
	case StaleRead:
		h.fs.overlay(h.state, p[:n], off)
	}
	return n, err
}

// overlay puts into p what was overwritten, so that the oldest bytes win.
func (f *FS) overlay(state *fileState, p []byte, off int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, old := range slices.Backward(state.old) {
		from, to := max(off, old.off), min(off+int64(len(p)), old.off+int64(len(old.data)))
		if from < to {
			copy(p[from-off:to-off], old.data[from-old.off:])
		}
	}
}

// remember keeps what a write is about to replace, when some rule may ask for it. Bytes behind the end were zero.
func (h *file) remember(length int, off int64) error {
	h.fs.mu.Lock()
	wanted := slices.ContainsFunc(h.fs.rules, func(r *Rule) bool {
		return r.Fault == StaleRead && r.matches(OpReadAt, []string{h.name})
	})
	h.fs.mu.Unlock()
	if !wanted {
		return nil
	}
	old := make([]byte, length)
	if _, err := h.base.ReadAt(old, off); err != nil && err != io.EOF {
		return err
	}
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	h.state.old = append(h.state.old, piece{off, old})
	return nil
}

// Sole implements vfs.Sole where the file system below does.
func (h *file) Sole(length int64) bool {
	base, ok := h.base.(vfs.Sole)
	return ok && base.Sole(length)
}

func (h *file) WriteAt(p []byte, off int64) (int, error) {
	rule, err := h.fs.begin(OpWriteAt, h.name)
	if err != nil {
		return 0, err
	}
	if err := h.remember(len(p), off); err != nil {
		return 0, err
	}
	if rule == nil {
		return h.base.WriteAt(p, off)
	}
	switch rule.Fault {
	case ShortWrite:
		n, err := h.base.WriteAt(p[:len(p)/2], off)
		if err == nil {
			err = failed(OpWriteAt, h.name, rule.cause())
		}
		return n, err
	case LostWrite:
		return len(p), nil
	case MisdirectedWrite:
		shift := rule.Shift
		if shift == 0 {
			shift = defaultShift
		}
		off += shift
	}
	return h.base.WriteAt(p, off)
}

// WritePiecesAt implements vfs.PieceWriter: to the rules it is one write.
func (h *file) WritePiecesAt(pieces [][]byte, off int64) (int, error) {
	return h.WriteAt(slices.Concat(pieces...), off)
}

// dropper is a file that can mark unsynced pages clean, as memfs has it.
type dropper interface{ DropUnsynced() }

func (h *file) Sync() error {
	rule, err := h.fs.begin(OpSync, h.name)
	if err != nil {
		return err
	}
	h.fs.mu.Lock()
	owed := h.owed
	h.owed = nil
	h.fs.mu.Unlock()
	if rule != nil {
		return h.dropSync(rule)
	}
	if owed != nil {
		return failed(OpSync, h.name, owed)
	}
	return h.base.Sync()
}

func (h *file) dropSync(rule *Rule) error {
	if d, ok := h.base.(dropper); ok {
		d.DropUnsynced()
	}
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if rule.Fault == DropSync {
		for _, other := range h.state.handles {
			if other != h {
				other.owed = rule.cause()
			}
		}
	}
	return failed(OpSync, h.name, rule.cause())
}

func (h *file) Size() (int64, error) {
	if _, err := h.fs.begin(OpSize, h.name); err != nil {
		return 0, err
	}
	return h.base.Size()
}

func (h *file) Truncate(size int64) error {
	if _, err := h.fs.begin(OpTruncate, h.name); err != nil {
		return err
	}
	return h.base.Truncate(size)
}

func (h *file) Allocate(size int64) error {
	if _, err := h.fs.begin(OpAllocate, h.name); err != nil {
		return err
	}
	return h.base.Allocate(size)
}

func (h *file) Close() error {
	_, fault := h.fs.begin(OpClose, h.name)
	h.fs.untrack(h)
	h.fs.mu.Lock()
	h.state.handles = slices.DeleteFunc(h.state.handles, func(o *file) bool { return o == h })
	h.fs.mu.Unlock()
	if err := h.base.Close(); err != nil {
		return err
	}
	return fault
}

func (h *file) Map(length int64) (vfs.Mapping, error) {
	if _, err := h.fs.begin(OpMap, h.name); err != nil {
		return nil, err
	}
	base, err := h.base.Map(length)
	if err != nil {
		return nil, err
	}
	m := &mapping{closer: closer{fs: h.fs, base: base, op: OpUnmap, name: h.name}, base: base}
	h.fs.track(&m.closer, "mapping of", h.name)
	return m, nil
}

type mapping struct {
	closer
	base vfs.Mapping
}

func (m *mapping) Bytes() []byte { return m.base.Bytes() }
