//go:build unix

package page

import (
	"errors"
	"math"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestLookHoldsNobodyUp has one request look at a file that can be read only once somebody writes it: a named pipe. What
// it reads then was written meanwhile, and is not used.
func TestLookHoldsNobodyUp(t *testing.T) {
	e := newEditedTemplate(t, "one", time.Hour)
	modified := time.Now().Add(-time.Minute)
	if err := errors.Join(os.Remove(e.file), syscall.Mkfifo(e.file, 0o600), os.Chtimes(e.file, modified, modified)); err != nil {
		t.Fatal(err)
	}
	e.nextLook.Store(0)
	rendered := make(chan struct{})
	render := func() {
		e.wants("one")
		rendered <- struct{}{}
	}
	wait := func() {
		t.Helper()
		select {
		case <-rendered:
		case <-time.After(10 * time.Second):
			t.Fatal("a request waits for the file")
		}
	}

	go render()
	for deadline := time.Now().Add(10 * time.Second); e.nextLook.Load() != math.MaxInt64; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no request looks at the file, or others may look as well")
		}
	}
	time.Sleep(2 * pause) // in which others may think that nobody looks
	for range 3 {
		go render()
		wait()
	}
	if err := os.WriteFile(e.file, []byte("two"), 0); err != nil {
		t.Fatal(err)
	}
	wait()

	e.replace("two", time.Hour)
	e.nextLook.Store(0)
	e.wants("two")
	e.wantsLogged()
}
