//go:build !linux

package main

import "time"

// The command needs Linux. Elsewhere it only has to compile.

func sleepExactly() {}

func sleep(d time.Duration) { time.Sleep(d) }
