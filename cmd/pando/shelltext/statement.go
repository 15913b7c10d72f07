package shelltext

import (
	"strings"
	"time"
)

// Statement is one line of a shell: either words, such as "show dbs", or calls on a database or one of its collections.
type Statement struct {
	Words      []string
	Collection string // empty: the database itself
	Calls      []Call
}

// Call is one method of a chain with its arguments as Extended JSON.
type Call struct {
	Name string
	Args []string
}

// Parse reads a statement; a semicolon may end it. The empty text is a statement without words and calls.
func Parse(text string, now time.Time) (Statement, error) {
	p, err := newParser(text, now)
	if err != nil {
		return Statement{}, err
	}
	p.space()
	start := p.at
	first := p.name(isNamePart)
	p.space()
	var s Statement
	if first == "db" && (p.done() || p.peek() == '.' || p.peek() == '[' || p.peek() == ';') {
		s, err = p.chain()
	} else {
		p.at = start
		s, err = p.words()
	}
	if err != nil {
		return s, err
	}
	p.space()
	for p.take(';') {
		p.space()
	}
	if !p.done() {
		return s, p.unexpected("the end")
	}
	return s, nil
}

// words reads a command of words; what is no letter or digit may be part of a name too.
func (p *parser) words() (s Statement, err error) {
	for {
		p.space()
		if c := p.peek(); c == '"' || c == '\'' {
			word, err := p.quoted()
			if err != nil {
				return s, err
			}
			s.Words = append(s.Words, word)
			continue
		}
		word := p.name(func(r rune) bool { return isNamePart(r) || r == '-' || r == '.' || r == '?' })
		if word == "" {
			return s, nil
		}
		s.Words = append(s.Words, word)
	}
}

// chain reads what follows "db": names that make a collection's, then calls.
func (p *parser) chain() (s Statement, err error) {
	var path []string
	for {
		p.space()
		var name string
		switch {
		case p.take('['):
			if name, err = p.subscript(); err != nil {
				return s, err
			}
			path = append(path, name)
			continue
		case p.take('.'):
			p.space()
			if name = p.name(func(r rune) bool { return isNamePart(r) || r == '-' }); name == "" {
				return s, p.unexpected("a name")
			}
		default:
			if len(s.Calls) == 0 && len(path) == 0 {
				s.Words = []string{"db"}
			} else if len(s.Calls) == 0 {
				return s, p.unexpected("a method such as .find()")
			}
			return s, nil
		}
		if p.space(); p.peek() != '(' {
			if len(s.Calls) > 0 {
				return s, p.unexpected("(")
			}
			path = append(path, name)
			continue
		}
		args, err := p.arguments(0)
		if err != nil {
			return s, err
		}
		if name == "getCollection" && len(s.Calls) == 0 && len(path) == 0 && len(args) == 1 {
			path = append(path, plain(args[0]))
			continue
		}
		s.Collection = strings.Join(path, ".")
		s.Calls = append(s.Calls, Call{name, args})
	}
}

// subscript reads a name in quotes and the bracket behind it.
func (p *parser) subscript() (string, error) {
	p.space()
	if c := p.peek(); c != '"' && c != '\'' {
		return "", p.unexpected("a name in quotes")
	}
	name, err := p.quoted()
	if err != nil {
		return "", err
	}
	if p.space(); !p.take(']') {
		return "", p.unexpected("]")
	}
	return name, nil
}
