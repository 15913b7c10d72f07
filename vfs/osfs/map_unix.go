//go:build linux || darwin || freebsd

package osfs

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pandodb/pando/vfs"
)

// mappings are the live mappings of one file, for systems whose sync does not cover them.
type mappings struct {
	mu   sync.Mutex
	live []*mapping
}

type mapping struct {
	of    *file
	mu    sync.Mutex // serialises Close
	bytes []byte
}

func (f *file) mapShared(length int) (vfs.Mapping, error) {
	m := &mapping{of: f}
	err := f.control("map", func(fd uintptr) (err error) {
		m.bytes, err = unix.Mmap(int(fd), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		if errors.Is(err, unix.ENODEV) {
			err = alsoIs(err, errors.ErrUnsupported)
		}
		return nil, explain(err)
	}
	f.maps.mu.Lock()
	f.maps.live = append(f.maps.live, m)
	f.maps.mu.Unlock()
	return m, nil
}

// MapRead implements vfs.ReadMapper.
func (f *file) MapRead(length int64) (vfs.Mapping, error) {
	if length <= 0 || int64(int(length)) != length {
		return nil, pathError("map", f.f.Name(), fs.ErrInvalid)
	}
	m := &mapping{of: f}
	err := f.control("map", func(fd uintptr) (err error) {
		m.bytes, err = unix.Mmap(int(fd), 0, int(length), unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, explain(err)
	}
	_ = unix.Madvise(m.bytes, unix.MADV_RANDOM) // advice: without it reads of a cold file are only slower
	return m, nil
}

// Sequential implements vfs.SequentialMapping.
func (m *mapping) Sequential() { _ = unix.Madvise(m.bytes, unix.MADV_SEQUENTIAL) } // advice

func (m *mapping) Bytes() []byte { return m.bytes }

func (m *mapping) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes == nil {
		return pathError("unmap", m.of.f.Name(), fs.ErrClosed)
	}
	m.of.maps.mu.Lock()
	m.of.maps.live = slices.DeleteFunc(m.of.maps.live, func(o *mapping) bool { return o == m })
	m.of.maps.mu.Unlock()
	bytes := m.bytes
	m.bytes = nil
	return pathError("unmap", m.of.f.Name(), unix.Munmap(bytes))
}
