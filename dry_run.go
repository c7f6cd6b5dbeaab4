package notfound

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
)

// dryRunWriter passes every call on as it comes, and judges what it sees.
type dryRunWriter struct{ exchange }

// dryRun calls the next handler, and counts what the page would have been for.
func (h *Handler) dryRun(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	dry := new(dryRunWriter)
	if !dry.enter(h, w, r) {
		return next.ServeHTTP(w, r)
	}
	defer func() { // also where the next handler panics, as net/http does over the status 0 of intercept
		dry.decision.leave(&dry.exchange)
		dry.count(err)
	}()
	return next.ServeHTTP(withInterfacesOf(w, dry), r)
}

// count counts what the page would have been for, and a 404 response that passes.
func (w *dryRunWriter) count(err error) {
	switch cause, isPage := w.cause(err); {
	case w.passed404:
		w.countWithoutPage(w.passedAs)
	case isPage && cause == report.Response:
		w.countWithoutPage(report.Replaceable)
	case isPage:
		w.countWithoutPage(cause)
	}
}

func (w *dryRunWriter) WriteHeader(status int) {
	w.judge(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *dryRunWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.begin()
	}
	return w.ResponseWriter.Write(p)
}

func (w *dryRunWriter) ReadFrom(r io.Reader) (int64, error) {
	w.begin()
	return w.ResponseWriterWrapper.ReadFrom(r)
}

func (w *dryRunWriter) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *dryRunWriter) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.begin()
	}
	return conn, buf, err
}

// begin judges what implies a status.
func (w *dryRunWriter) begin() {
	w.judgeBare()
	if w.state == pending {
		w.state = passed
	}
}
