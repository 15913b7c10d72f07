package aggregate

import (
	"bytes"
	"slices"
	"sort"
)

// rankedList is values in the order of their keys, those of one key in the order of arrival. It is cut into pieces: where there are a hundred
// thousand, putting one between them would move all that follow.
type rankedList struct {
	pieces [][]ranked
	n      int
}

// longestPiece is how long a piece gets before it becomes two.
const longestPiece = 512

func (l *rankedList) first() *ranked { return &l.pieces[0][0] }

func (l *rankedList) last() *ranked {
	piece := l.pieces[len(l.pieces)-1]
	return &piece[len(piece)-1]
}

// insert puts a value behind those whose keys are not greater.
func (l *rankedList) insert(r ranked) {
	l.n++
	i := sort.Search(len(l.pieces), func(i int) bool { return bytes.Compare(l.pieces[i][0].key, r.key) > 0 })
	if i = max(i-1, 0); len(l.pieces) == 0 {
		l.pieces = append(l.pieces, nil)
	}
	piece := l.pieces[i]
	at := sort.Search(len(piece), func(at int) bool { return bytes.Compare(piece[at].key, r.key) > 0 })
	piece = slices.Insert(piece, at, r)
	l.pieces[i] = piece
	if half := len(piece) / 2; len(piece) > longestPiece {
		l.pieces = slices.Insert(l.pieces, i+1, slices.Clone(piece[half:]))
		clear(piece[half:])
		l.pieces[i] = piece[:half]
	}
}

// dropFirst removes the first value.
func (l *rankedList) dropFirst() {
	l.n--
	piece := slices.Delete(l.pieces[0], 0, 1)
	if l.pieces[0] = piece; len(piece) == 0 {
		l.pieces = slices.Delete(l.pieces, 0, 1)
	}
}

// dropLast removes the last value.
func (l *rankedList) dropLast() {
	l.n--
	i := len(l.pieces) - 1
	piece := l.pieces[i]
	piece[len(piece)-1] = ranked{}
	if l.pieces[i] = piece[:len(piece)-1]; len(l.pieces[i]) == 0 {
		l.pieces = l.pieces[:i]
	}
}

// all gives each of the values, in their order, until each fails.
func (l *rankedList) all(each func(r *ranked) error) error {
	for _, piece := range l.pieces {
		for i := range piece {
			if err := each(&piece[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
