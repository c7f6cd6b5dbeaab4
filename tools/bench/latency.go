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
// serve, and then with half of it. It adds the rate, and the latencies at that rate.
func (b *bench) measureLatency(ctx context.Context, site *runningSite, d time.Duration, s *latencySamples) error {
	load, err := b.connect(site, latencyLoad)
	if err != nil {
		return err
	}
	defer load.close()
	saturated := d / 4
	requests, err := load.saturate(ctx, saturated)
	if err != nil {
		return err
	}
	rate := float64(requests) / saturated.Seconds() / 2
	latencies, err := load.sendAt(ctx, rate, d)
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
	runtime.GOMAXPROCS(2) // the goroutine that says when a request is due sleeps in a thread of its own
	defer runtime.GOMAXPROCS(1)
	due := make(chan time.Time, 10_000)
	go announce(ctx, due, perSecond, d)

	latencies := make([][]time.Duration, len(l.clients))
	errs := make([]error, len(l.clients))
	var all sync.WaitGroup
	for i, c := range l.clients {
		all.Go(func() {
			for begin := range due {
				if errs[i] == nil {
					errs[i] = l.site.exchange(c, l.body)
					latencies[i] = append(latencies[i], time.Since(begin))
				}
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
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	sleepExactly()
	begin := time.Now()
	for next := begin; next.Sub(begin) < d && ctx.Err() == nil; {
		sleep(time.Until(next))
		due <- next
		seconds := rand.ExpFloat64() / perSecond
		next = next.Add(time.Duration(seconds * float64(time.Second)))
	}
}

// percentile returns a percentile of sorted durations, in µs.
func percentile(sorted []time.Duration, percent int) float64 {
	return inMicroseconds(sorted[len(sorted)*percent/100])
}
