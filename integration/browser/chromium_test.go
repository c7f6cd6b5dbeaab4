package browser

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium is a Chromium that a test drives by the DevTools protocol.
type chromium struct {
	t   *testing.T
	ctx context.Context

	mu    sync.Mutex
	notes notes // mu guards them
}

// notes are what Chromium noted until now.
type notes struct {
	fetched    []string
	responses  []response
	complaints []string // of the console, errors and violations of the policy
}

type response struct {
	url        string
	status     int64
	hasNosniff bool
}

func startChromium(t *testing.T) *chromium {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(30*time.Second),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)

	b := &chromium{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.notice)
	b.run(network.Enable(), runtime.Enable(), log.Enable())
	return b
}

// notice takes down an event.
func (b *chromium) notice(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	complaint := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.notes.fetched = append(b.notes.fetched, e.Request.URL)
	case *network.EventResponseReceived:
		b.notes.responses = append(b.notes.responses, response{
			url:        e.Response.URL,
			status:     e.Response.Status,
			hasNosniff: e.Response.Headers["X-Content-Type-Options"] == "nosniff",
		})
	case *runtime.EventConsoleAPICalled:
		complaint = "console: " + e.Type.String()
	case *runtime.EventExceptionThrown:
		complaint = "exception: " + e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		complaint = e.Entry.Source.String() + ": " + e.Entry.Text
	}
	is404 := strings.Contains(complaint, "the server responded with a status of 404") // as a 404 page has
	if complaint != "" && !is404 {
		b.notes.complaints = append(b.notes.complaints, complaint)
	}
}

func (b *chromium) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *chromium) open(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url))
}

func (b *chromium) reload() {
	b.t.Helper()
	b.run(chromedp.Reload())
}

func (b *chromium) eval(expression string) string {
	b.t.Helper()
	var result string
	b.run(chromedp.Evaluate(expression, &result, awaitPromise))
	return result
}

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams {
	return p.WithAwaitPromise(true)
}

func (b *chromium) noted() notes {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notes
}

func (b *chromium) complaints() []string {
	return b.noted().complaints
}
