package main

import "syscall"

// childAttributes keep Ctrl-C from the child, which the parent ends itself, and let no child outlive the parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
