// Package corrupt holds the corruption sweep: a small database with every kind of blob in it is damaged in every way that a
// disk can think of, one damage at a time, and whatever the database then answers must be right or a named error. Salvage
// must give back everything outside of the damage.
//
//	go test ./test/corrupt                        a sample, in seconds
//	go test -tags slow ./test/corrupt             more of them
//	go test ./test/corrupt -sweep.stride 1        every byte, one random bit of each
//	go test ./test/corrupt -sweep.stride 1 -sweep.bits 8 -timeout 24h
package corrupt
