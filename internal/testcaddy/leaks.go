package testcaddy

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// CheckGoroutines fails a test that leaks goroutines. Call it before anything starts, so that it checks after
// everything stopped.
func CheckGoroutines(t testing.TB) {
	t.Helper()
	ignored := []goleak.Option{
		goleak.IgnoreCurrent(),
		// it sleeps for five seconds before it sees that a certificate's lock is released
		goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
	}
	t.Cleanup(func() {
		retry(t, func() error { return goleak.Find(ignored...) })
	})
}

// MemoryInUse returns how many bytes of the heap are in use, without garbage. Stacks grow and shrink by chance.
func MemoryInUse() int64 {
	// what is in a sync.Pool outlives one collection
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// CheckMemory fails a test if more memory is in use than before, by more than a limit. It waits for what is still being
// closed.
func CheckMemory(t testing.TB, before, limit int64) {
	t.Helper()
	retry(t, func() error {
		rise := MemoryInUse() - before
		if rise > limit {
			return fmt.Errorf("the memory in use rose by %d KiB, want at most %d", rise>>10, limit>>10)
		}
		return nil
	})
}

// retry calls a function until it succeeds. It fails the test with the last error if that takes too long.
func retry(t testing.TB, try func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
