package columns

import (
	"slices"

	"github.com/pandodb/pando/internal/pageformat"
)

// Decode makes the page of which Split made cols and rest. It fills page, which has its length.
func (c *Coder) Decode(page, cols, rest []byte) error {
	if len(page) > maxPage {
		return damaged("a page that is too long")
	}
	h, ok := readHead(cols, len(page))
	if !ok || h.Size > len(page) {
		return damaged("no page begins so")
	}
	count, at := int(h.Count), copy(page, cols[:h.Size])
	cols, err := c.readClasses(cols[at:])
	if err != nil {
		return err
	}
	key, i := uvarint(cols)
	value, j := uvarint(cols[i:])
	if i == 0 || j == 0 {
		return damaged("it ends early")
	}
	cols = cols[i+j:]
	for i := range c.classes {
		if k := &c.classes[i]; key > k.suffix || value > uint64(k.value()) {
			return damaged("more columns are shared than there are")
		}
	}
	c.of = slices.Grow(c.of[:0], count)[:count]
	if count > 0 {
		if cols, err = c.readColumn(c.of, cols); err != nil {
			return err
		}
	}
	if err := c.arrange(page, at, rest); err != nil {
		return err
	}
	return c.readAll(page, cols, int(key), int(value))
}

// readAll reads the columns: those that all classes share, key and value of them, then those of each class.
func (c *Coder) readAll(page, cols []byte, key, value int) error {
	if len(c.classes) == 0 {
		return damaged("no columns")
	}
	c.earlier = c.earlier[:0]
	cols, err := c.readColumns(page, cols, c.keys, 0, key)
	if err == nil {
		cols, err = c.readColumns(page, cols, c.values, 0, value)
	}
	for i := range c.classes {
		k := &c.classes[i]
		places := c.places[k.from-k.count : k.from]
		c.earlier = c.earlier[:0]
		if err == nil {
			cols, err = c.readColumns(page, cols, places, key, int(k.suffix))
		}
		if err == nil {
			cols, err = c.readColumns(page, cols, places, int(k.suffix)+value, k.width())
		}
	}
	if err == nil && len(cols) > 0 {
		err = damaged("bytes behind the last column")
	}
	return err
}

// readClasses reads the lengths of the classes.
func (c *Coder) readClasses(b []byte) ([]byte, error) {
	n, k := uvarint(b)
	if k == 0 || n > maxClasses {
		return nil, damaged("too many classes")
	}
	b = b[k:]
	c.classes = c.classes[:0]
	for range n {
		suffix, i := uvarint(b)
		if i == 0 {
			return nil, damaged("a class ends early")
		}
		meta, j := uvarint(b[i:])
		if j == 0 || !possible(suffix, meta) || meta&pageformat.FlagExpiry != 0 {
			return nil, damaged("a class of impossible lengths")
		}
		k := class{suffix: suffix, meta: meta}
		if k.width() > maxColumns {
			return nil, damaged("a class of impossible lengths")
		}
		c.classes = append(c.classes, k)
		b = b[i+j:]
	}
	return b, nil
}

// arrange finds the place of each entry from at on, writes the lengths of those that are in columns, and the others whole.
func (c *Coder) arrange(page []byte, at int, rest []byte) error {
	for _, number := range c.of {
		if int(number) < len(c.classes) {
			c.classes[number].count++
		} else if int(number) > len(c.classes) {
			return damaged("an unknown class")
		}
	}
	total := 0
	c.lengths = c.lengths[:0]
	for i := range c.classes {
		k := &c.classes[i]
		k.from = total
		total += k.count
		from := len(c.lengths)
		c.lengths = pageformat.AppendLengths(c.lengths, int(k.suffix), k.meta, 0)
		k.lengths = c.lengths[from:]
	}
	c.places = slices.Grow(c.places[:0], total)[:total]
	c.keys, c.values = slices.Grow(c.keys[:0], total), slices.Grow(c.values[:0], total)
	for _, number := range c.of {
		if int(number) == len(c.classes) {
			e, ok := readEntry(rest, 0)
			if !ok || e.End() > len(page)-at {
				return damaged("an entry of the rest ends early")
			}
			copy(page[at:], rest[:e.End()])
			at, rest = at+e.End(), rest[e.End():]
			continue
		}
		k := &c.classes[number]
		if len(page)-at < len(k.lengths)+k.width() {
			return damaged("entries reach behind the end")
		}
		if len(k.lengths) == 3 { // most are, and to copy so few bytes takes longer than to store them
			page[at], page[at+1], page[at+2] = k.lengths[0], k.lengths[1], k.lengths[2]
			at += 3
		} else {
			at += copy(page[at:], k.lengths)
		}
		c.places[k.from] = uint32(at)
		k.from++
		c.keys, c.values = append(c.keys, uint32(at)), append(c.values, uint32(at)+uint32(k.suffix))
		at += k.width()
	}
	if at != len(page) || len(rest) > 0 {
		return damaged("entries of another length")
	}
	return nil
}

// readColumns reads columns [from, to) of the entries at places in page.
func (c *Coder) readColumns(page, cols []byte, places []uint32, from, to int) ([]byte, error) {
	n := len(places)
	if n == 0 {
		return nil, damaged("a class without entries")
	}
	c.column = slices.Grow(c.column[:0], n)[:n]
	for p := from; p < to; {
		if len(cols) < 2 {
			return nil, damaged("a column ends early")
		}
		if kind := cols[0]; kind&(deltaBit|kindBits) == kindConstant {
			run := int(kind>>runShift) + 1
			if run > to-p || len(cols) <= run {
				return nil, damaged("constant columns end early")
			}
			putRun(page, places, p, cols[1:1+run])
			p, cols = p+run, cols[1+run:]
			continue
		}
		if cols[0] == kindCopy {
			i, n := uvarint(cols[1:])
			if n == 0 || i >= uint64(len(c.earlier)) {
				return nil, damaged("a copy of no column")
			}
			e := c.earlier[i]
			for j, at := range places {
				page[int(at)+p] = page[int(e.places[j])+e.p]
			}
			p, cols = p+1, cols[1+n:]
			continue
		}
		var err error
		if cols, err = c.readColumn(c.column, cols); err != nil {
			return nil, err
		}
		c.earlier = append(c.earlier, earlier{places, p})
		for j, b := range c.column[:len(places)] {
			page[int(places[j])+p] = b
		}
		p++
	}
	return cols, nil
}

// putRun writes the bytes of constant columns from column p on. There are a few as a rule, and to copy those takes longer than to store
// them.
func putRun(page []byte, places []uint32, p int, run []byte) {
	for len(run) >= 2 && len(run) < 8 {
		a, b := run[0], run[1]
		for _, at := range places {
			two := page[int(at)+p:][:2]
			two[0], two[1] = a, b
		}
		p, run = p+2, run[2:]
	}
	switch len(run) {
	case 0:
	case 1:
		for _, at := range places {
			page[int(at)+p] = run[0]
		}
	default:
		for _, at := range places {
			copy(page[int(at)+p:], run)
		}
	}
}
