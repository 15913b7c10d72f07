package osfs

import (
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Hole implements vfs.HoleFinder. File systems that know no holes answer with the size.
func (f *file) Hole(offset int64) (start, end int64, err error) {
	err = f.control("find a hole", func(fd uintptr) (err error) {
		if start, err = unix.Seek(int(fd), offset, unix.SEEK_HOLE); err != nil {
			return err
		}
		end, err = unix.Seek(int(fd), start, unix.SEEK_DATA)
		if err == unix.ENXIO { // no data behind it
			end, err = unix.Seek(int(fd), 0, unix.SEEK_END)
		}
		return err
	})
	return start, end, err
}

// Forget implements vfs.Forgetter.
func (f *file) Forget(offset, length int64) {
	_ = f.control("forget", func(fd uintptr) error { return unix.Fadvise(int(fd), offset, length, unix.FADV_DONTNEED) })
}

// sync leaves out times and owners, which nothing here depends upon, and so often saves a second write. It covers mapped
// stores: the kernel finds them in the same page cache.
func (f *file) sync() error {
	return f.control("fdatasync", func(fd uintptr) error {
		return retry(func() error { return unix.Fdatasync(int(fd)) })
	})
}

func (f *file) allocate(size int64) error {
	var cause error
	err := f.control("fallocate", func(fd uintptr) error {
		cause = retry(func() error { return unix.Fallocate(int(fd), 0, 0, size) })
		return cause
	})
	if cause == unix.EOPNOTSUPP || cause == unix.ENOSYS {
		return f.extend(size)
	}
	return err
}

// Reserve implements vfs.Reserver.
func (f *file) Reserve(from, to int64) {
	_ = f.control("fallocate", func(fd uintptr) error {
		return retry(func() error { return unix.Fallocate(int(fd), unix.FALLOC_FL_KEEP_SIZE, from, to-from) })
	})
}

// mostPieces is what the system takes at a time.
const mostPieces = 1024

// WritePiecesAt implements vfs.PieceWriter.
func (f *file) WritePiecesAt(pieces [][]byte, offset int64) (n int, err error) {
	err = f.control("write", func(fd uintptr) error {
		for {
			pieces = unwritten(pieces, 0)
			if len(pieces) == 0 {
				return nil
			}
			written := 0
			err := retry(func() (err error) {
				written, err = unix.Pwritev(int(fd), pieces[:min(len(pieces), mostPieces)], offset+int64(n))
				return err
			})
			if err == nil && written == 0 {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
			n += written
			pieces = unwritten(pieces, written)
		}
	})
	return n, explain(err)
}

// unwritten is what is left of the pieces behind n bytes of them, which stay as they are, and behind empty ones.
func unwritten(pieces [][]byte, n int) [][]byte {
	for len(pieces) > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces = slices.Clone(pieces)
		pieces[0] = pieces[0][n:]
	}
	return pieces
}

// Sole implements vfs.Sole. Systems before Linux 6.5 do not tell what is in memory.
func (f *file) Sole(length int64) bool {
	var stat unix.Stat_t
	var found unix.Cachestat_t
	err := f.control("cachestat", func(fd uintptr) error {
		if err := unix.Fstat(int(fd), &stat); err != nil {
			return err
		}
		return unix.Cachestat(uint(fd), &unix.CachestatRange{Len: uint64(length)}, &found, 0)
	})
	page := int64(os.Getpagesize())
	return err == nil && stat.Nlink <= 1 && int64(found.Cache) >= (length+page-1)/page
}

// reservedToo is how many blocks are free with those that ext2, ext3 and ext4 keep for root, if that is who we are; else 0. Some more ext4
// keeps for itself (s_resv_clusters): a fiftieth, and 4,096 at most. Other file systems mean something else by the difference.
func reservedToo(stat *unix.Statfs_t) int64 {
	if stat.Type != unix.EXT4_SUPER_MAGIC || os.Geteuid() != 0 {
		return 0
	}
	return int64(stat.Bfree) - int64(min(stat.Blocks/50, 4096))
}
