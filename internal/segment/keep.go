package segment

// FileName returns the name of a segment's file.
func FileName(id uint32) string { return fileName(id) }

// Keep accounts a value blob live when the Writer is committed: from then on a root refers to it.
func (w *Writer) Keep(p Pointer) {
	if !p.IsZero() && w.pending != nil {
		w.pending[p.Segment] += int64(p.Length)
	}
}
