package wal

import "errors"

const blockSize = 4096

type Log struct{}

func Create(o Options, first uint64) (*Log, error) { return nil, errors.ErrUnsupported }
func Recover(o Options, from Position, fn func(seq uint64, payload []byte) error) (*Log, Recovered, error) {
	return nil, Recovered{}, errors.ErrUnsupported
}
func Replay(o Options, from Position, fn func(seq uint64, payload []byte) error) (Recovered, error) {
	return Recovered{}, errors.ErrUnsupported
}
func (l *Log) Append(seq uint64, payload []byte) (Position, error) { return Position{}, errors.ErrUnsupported }
func (l *Log) Sync() error                                         { return errors.ErrUnsupported }
func (l *Log) Prepare() error                                      { return errors.ErrUnsupported }
func (l *Log) Unsynced() int64                                     { return 0 }
func (l *Log) Size() int64                                         { return 0 }
func (l *Log) Position() Position                                  { return Position{} }
func (l *Log) Synced() Position                                    { return Position{} }
func (l *Log) Err() error                                          { return nil }
func (l *Log) Recycle(before Position) error                       { return errors.ErrUnsupported }
func (l *Log) Oldest() (Position, uint64)                          { return Position{}, 0 }
func (l *Log) Shrink() error                                       { return errors.ErrUnsupported }
func (l *Log) Close() error                                        { return errors.ErrUnsupported }

type Reader struct{}

func (l *Log) NewReader(fromSeq uint64) (*Reader, error) { return nil, errors.ErrUnsupported }
func (r *Reader) Limit(upTo uint64)                      {}
func (r *Reader) Next() (seq uint64, payload []byte, err error) {
	return 0, nil, errors.ErrUnsupported
}
func (r *Reader) Close() error { return nil }
