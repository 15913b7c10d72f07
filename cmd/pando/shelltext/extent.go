package shelltext

// Open reports whether a text ends inside of brackets or of a comment, or with an operator that wants more: then more lines are to follow.
func Open(text string) bool {
	var e Extent
	e.Add(text)
	return e.Open()
}

// Extent tells whether a text is open of which more and more comes. It looks at every byte once. The zero value knows no text yet.
type Extent struct {
	depth   int  // of brackets
	last    byte // of what is neither white space nor a comment
	within  place
	quote   byte // that ends a string
	escaped bool // in a string or pattern: the next byte stands for itself
	class   bool // in a pattern: inside of square brackets, where a slash does not end it
	star    bool // in a comment of several lines: the last byte was one
}

// place is what a text may be in the midst of.
type place uint8

const (
	code        place = iota
	slash             // of which it is not known yet what it begins
	stringText        // in quotes
	pattern           // a regular expression
	lineComment       // to the end of the line
	comment           // to the closing mark
)

// Add goes on with what follows.
func (e *Extent) Add(text string) {
	for i := range len(text) {
		e.add(text[i])
	}
}

// Open reports whether what was added is open.
func (e *Extent) Open() bool {
	return e.depth > 0 || e.within == comment || e.last == '.' || e.last == ','
}

func (e *Extent) add(c byte) {
	switch e.within {
	case code:
		e.addCode(c)
	case slash:
		e.addBehindSlash(c)
	case stringText:
		e.addQuoted(c, c == e.quote)
	case pattern:
		if !e.escaped && (c == '[' || c == ']') {
			e.class = c == '['
		}
		e.addQuoted(c, c == '/' && !e.class)
	case lineComment:
		if c == '\n' {
			e.within = code
		}
	case comment:
		if e.star && c == '/' {
			e.within = code
		}
		e.star = c == '*'
	}
}

func (e *Extent) addCode(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
		return
	case '/':
		e.within = slash // what is behind it decides whether it counts
		return
	case '"', '\'':
		e.within, e.quote = stringText, c
	case '{', '[', '(':
		e.depth++
	case '}', ']', ')':
		e.depth--
	}
	e.last = c
}

func (e *Extent) addBehindSlash(c byte) {
	switch c {
	case '/':
		e.within = lineComment
	case '*':
		e.within, e.star = comment, false
	default:
		e.within, e.class, e.last = pattern, false, '/'
		e.add(c)
	}
}

// addQuoted is for what stands between quotes or slashes: the end of the line ends it too, though it is an error there.
func (e *Extent) addQuoted(c byte, ends bool) {
	switch {
	case e.escaped:
		e.escaped = false
	case c == '\\':
		e.escaped = true
	case ends || c == '\n':
		e.within = code
	}
}
