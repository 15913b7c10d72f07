//go:build !linux

package main

import "syscall"

// childAttributes keep Ctrl-C from the child, which the parent ends itself.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
