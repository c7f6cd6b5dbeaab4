package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// measureLatency loads one site while the other sites of its group have nothing to do: first with all that the site can
// serve, and then with half of it. It adds this rate, and the latencies at this rate.
func (b *bench) measureLatency(ctx context.Context, site *runningSite, s *samples) error {
	load, err := b.connect(site, latencyLoad)
	if err != nil {
		return err
	}
	defer load.close()
	saturated := b.duration / 4
	requests, err := load.saturate(ctx, saturated)
	if err != nil {
		return err
	}
	rate := float64(requests) / saturated.Seconds() / 2
	latencies, err := load.sendAt(ctx, rate, b.duration)
	if err != nil {
		return err
	}
	s.rates = append(s.rates, rate)
	s.p50s = append(s.p50s, percentile(latencies, 50))
	s.p99s = append(s.p99s, percentile(latencies, 99))
	return nil
}

// sendAt sends requests at random times, so many per second on average, and returns how long each took, in ascending
// order. A request takes its time from when it is due. So if all connections are busy, the wait for one counts as well.
func (l *siteLoad) sendAt(ctx context.Context, perSecond float64, d time.Duration) ([]time.Duration, error) {
	// The goroutine that announces when a request is due sleeps in a thread of its own.
	runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(1)

	due := make(chan time.Time, 10_000)
	go announce(ctx, due, perSecond, d)

	latencies := make([][]time.Duration, len(l.clients))
	errs := make([]error, len(l.clients))
	var all sync.WaitGroup
	for i, c := range l.clients {
		all.Go(func() {
			for begin := range due {
				if errs[i] != nil {
					continue
				}
				errs[i] = l.site.exchange(c, l.body)
				took := time.Since(begin)
				latencies[i] = append(latencies[i], took)
			}
		})
	}
	all.Wait()
	sorted := slices.Concat(latencies...)
	slices.Sort(sorted)
	if len(sorted) == 0 {
		errs = append(errs, errors.New("no request was sent"))
	}
	errs = append(errs, ctx.Err(), l.site.loggedError())
	return sorted, errors.Join(errs...)
}

// announce sends the time at which each request is due. The times between them are distributed exponentially, as if
// many clients did not know of each other.
func announce(ctx context.Context, due chan<- time.Time, perSecond float64, d time.Duration) {
	defer close(due)
	runtime.LockOSThread() // without an Unlock, so that the thread ends with the goroutine
	sleepExactly()
	next := time.Now()
	end := next.Add(d)
	for next.Before(end) && ctx.Err() == nil {
		sleep(time.Until(next))
		due <- next
		wait := rand.ExpFloat64() / perSecond * float64(time.Second)
		next = next.Add(time.Duration(wait))
	}
}

// percentile returns a percentile of sorted durations, in µs.
func percentile(sorted []time.Duration, percent int) float64 {
	i := len(sorted) * percent / 100
	return inMicroseconds(sorted[i])
}
