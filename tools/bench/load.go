//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clients are connected to a server. Each has at most one request in flight.
type clients struct {
	*server
	load       load
	transports []*http.Transport
}

// connect connects the clients. Each of them sends a request, or the cost of connecting would be measured.
func (s *server) connect(l load) (*clients, error) {
	c := &clients{server: s, load: l}
	for range l.connections {
		client := newClient(l)
		for range l.inFlight {
			c.transports = append(c.transports, client)
			if err := c.exchange(client); err != nil {
				c.close()
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *clients) close() {
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}

// exchange sends a request, and checks the response.
func (c *clients) exchange(t *http.Transport) error {
	got, _, err := c.ask(c.load, t)
	if err == nil && got != c.answer {
		err = fmt.Errorf("got\n%s\nwant\n%s", got, c.answer)
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w", c.Name, c.load.Name, err)
	}
	return nil
}

// saturate has every client send one request after the other for a while. It returns how many were answered.
func (c *clients) saturate(d time.Duration) (int, error) {
	end := time.Now().Add(d)
	took, err := c.send(func() (time.Time, bool) {
		now := time.Now()
		return now, now.Before(end)
	})
	return len(took), err
}

// schedule returns when the next request is due. It is not ok if there is none.
type schedule func() (due time.Time, ok bool)

// send has every client send the next request that is due, once it has the response to the one before. It returns how
// long each took, in µs. A request takes its time from when it is due. So if all clients are busy, the wait for one
// counts as well.
func (c *clients) send(next schedule) ([]float64, error) {
	took := make([][]float64, len(c.transports))
	err := together(took, func(i int) error {
		for due, ok := next(); ok; due, ok = next() {
			if err := c.exchange(c.transports[i]); err != nil {
				return err
			}
			latency := inMicroseconds(time.Since(due))
			took[i] = append(took[i], latency)
		}
		return nil
	})
	return slices.Concat(took...), err
}

// together runs do with the index of every item at once. It returns their errors.
func together[T any](items []T, do func(i int) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i := range items {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// atRandom has so many requests per second due on average. The times between them are distributed exponentially, as if
// many clients did not know of each other.
func atRandom(perSecond float64, d time.Duration) schedule {
	due := make(chan time.Time, 10_000)
	go func() {
		defer close(due)
		// The kernel wakes this thread as exactly as it can. time.Sleep is a millisecond too long in a process that has
		// nothing else to do. Without an Unlock, the thread ends with the goroutine.
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		next := time.Now()
		for end := next.Add(d); next.Before(end); {
			wait := unix.NsecToTimespec(time.Until(next).Nanoseconds())
			_ = unix.Nanosleep(&wait, nil) // returns at once if the request is overdue
			due <- next
			between := rand.ExpFloat64() / perSecond * float64(time.Second)
			next = next.Add(time.Duration(between))
		}
	}()
	return func() (time.Time, bool) {
		next, ok := <-due
		return next, ok
	}
}

func inMicroseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond)
}
