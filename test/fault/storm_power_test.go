package fault

import "github.com/pandodb/pando"

func (s *storm) open() error {
	var err error
	o := s.options
	s.db, err = pando.Open("db", &o)
	return s.opened(err)
}

func (s *storm) close() error { return s.db.Close() }

// reopen closes the database and opens it again, without the fault at the latest.
func (s *storm) reopen() {
	s.t.Helper()
	err := s.shut(s)
	switch {
	case err == nil && !s.failed:
		s.model.settled()
		if s.rng.IntN(3) == 0 && !s.damages() {
			s.loseSlot()
		}
	case s.profile == pando.Bench: // what has not settled is nowhere
		s.model.lost()
	}
	s.comeUp(s)
}

func (s *storm) cut(kill bool) {
	if !kill || s.profile == pando.Bench {
		s.model.lost()
	}
}

// meet finds out which keyspaces there are.
func (s *storm) meet() {
	s.t.Helper()
	infos, err := s.db.Keyspaces()
	s.must("keyspaces", err)
	var there []string
	for _, i := range infos {
		there = append(there, i.Name)
	}
	unknown, err := s.model.find(there)
	s.must("keyspaces", err)
	for _, name := range unknown {
		err := s.db.DropKeyspace(name)
		if s.model.dropped(name); s.judge("drop what may be lost", err) {
			s.model.made(name, err)
			s.model.tables[name].unknown = true
		}
	}
}
