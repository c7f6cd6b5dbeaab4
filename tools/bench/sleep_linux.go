package main

import (
	"syscall"
	"time"
)

// sleepExactly has the kernel wake the current thread from a sleep as exactly as it can.
func sleepExactly() {
	const nanoseconds = 1
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, nanoseconds, 0)
}

// sleep sleeps in the kernel. time.Sleep is a millisecond too long in a process that has nothing else to do.
func sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&t, nil) // if a signal ends it, a request is sent too early
}
