package fault

import "github.com/pandodb/pando"

func (s *storm) open() error {
	var err error
	o := s.options
	s.db, err = pando.Open("db", &o)
	s.note("open: %v", err)
	s.failed, s.troubled = false, s.fault != ""
	return err
}

// reopen closes the database and opens it again, without the fault at the latest.
func (s *storm) reopen() {
	s.t.Helper()
	err := s.db.Close()
	s.judge("close", err)
	s.noLeaks("")
	switch {
	case err == nil && !s.failed:
		s.model.settled()
		if s.rng.IntN(3) == 0 && !s.damages() {
			s.loseSlot()
		}
	case s.profile == pando.Bench: // what has not settled is nowhere
		s.model.lost()
	}
	s.comeUp()
}

// comeUp opens the database, without the fault at the latest.
func (s *storm) comeUp() {
	s.t.Helper()
	if err := s.open(); err != nil {
		s.judge("open", err)
		s.noLeaks("")
		s.calm()
		s.must("open", s.open())
	}
	s.findKeyspaces()
}

// cutPower opens what a power cut, or a kill, leaves, which ends the fault. Another one may begin.
func (s *storm) cutPower() {
	s.t.Helper()
	image, kill := s.powerCut()
	s.judge("close", s.db.Close())
	s.noLeaks("")
	s.plug(image)
	s.calm()
	if !kill || s.profile == pando.Bench {
		s.model.lost()
	}
	if s.rng.IntN(2) == 0 {
		s.begin()
	}
	s.comeUp()
}

// findKeyspaces finds out which keyspaces there are.
func (s *storm) findKeyspaces() {
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
