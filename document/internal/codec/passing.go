package codec

// keptColumns is how many columns a passing codec may have to be kept.
const keptColumns = 64

// NewPassing is New for a codec that decodes a record and is not kept: it lies in memory that serves for others after done has been
// called, when it must not be used any more. It must not encode, and is used by one goroutine.
//
// It reads no more of the dictionaries than its records refer to: entries that come again most often were the first to be stored, so that
// is a small part as a rule. What is wrong with the store may come to light when a record is decoded only.
func NewPassing(f Format, t Templates) (c *Codec, done func(), err error) {
	if t == nil || f > JSON {
		c, err = empty(f, t)
		return c, func() {}, err
	}
	l := loadings.Get().(*loading)
	if c, err = l.pass(f, t); err != nil {
		l.passed()
		return nil, nil, err
	}
	return c, l.passed, nil
}

// pass makes the passing codec that of a collection, with its templates.
func (l *loading) pass(f Format, t Templates) (*Codec, error) {
	if l.passing == nil {
		c, err := empty(f, t)
		if err != nil {
			return nil, err
		}
		// Columns of other collections are not to take the places of its own.
		c.lender, c.maxColumns = l, MaxColumns+keptColumns
		l.passing = c
	}
	c := l.passing
	c.format, c.store, l.rest = f, t, t.Definitions()
	c.mu.Lock()
	defer c.mu.Unlock()
	number, definition, ok, err := c.loadTemplates(l, l.rest)
	if err == nil {
		err = l.lend(c, number, definition, ok)
	}
	return c, loadError(err)
}

// passed gives the memory back when the passing codec is done.
func (l *loading) passed() {
	l.forgetPassed()
	l.done()
}

// forgetPassed takes the collection from the passing codec, and what was taken in with it.
func (l *loading) forgetPassed() {
	_ = l.endOfRest() // which was read as far as it was needed
	l.fault = nil
	for _, in := range l.intakes {
		in.column.state.Store(nil)
	}
	l.forget()
	if c := l.passing; c != nil {
		c.store, c.dictionary = nil, 0
		if len(c.columns) > keptColumns || c.defined > MaxDefinition {
			l.passing = nil // it would hold memory that few have a use for
		}
	}
}

// fetch takes in parts of dictionaries until a column has entry i, if it has that, and returns the dictionary of the column.
func (l *loading) fetch(col *column, i int) *dictionary {
	c := col.codec
	c.mu.Lock()
	defer c.mu.Unlock()
	for l.rest != nil && l.fault == nil && col.state.Load().count() <= i {
		number, definition, ok := l.rest.Next()
		l.fault = loadError(l.lend(c, number, definition, ok))
	}
	return col.state.Load()
}

// lend takes in a part, and shows its column where that is: it is ok, unless there are no more parts.
func (l *loading) lend(c *Codec, number uint32, definition []byte, ok bool) error {
	if !ok {
		return l.endOfRest()
	}
	in, err := l.take(c, number, definition)
	if err != nil {
		return err
	}
	in.entries.packed, in.entries.count, in.entries.patterns = in.packed, in.count, in.column.patterns == nil
	in.lent.stored = &in.entries
	in.column.state.Store(&in.lent)
	return nil
}

// endOfRest ends the reading of the store.
func (l *loading) endOfRest() error {
	rest := l.rest
	if l.rest = nil; rest == nil {
		return nil
	}
	return rest.Close()
}
