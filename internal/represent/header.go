package represent

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/request"
)

// Representation is a page as it is sent. It is kept small, or the stack of each HTTP/2 stream would have to grow: that
// once took 14 % of the CPU time of an HTML page.
type Representation struct {
	format         *format
	encoding       string // empty: none
	content        content
	variesByClient bool // other clients get the response that it replaces
	mayBeEncoded   bool // for this client or for another
	isBuiltIn      bool // it may need a policy
	hasPolicy      bool // the header has it, and none of the site's

	// A browser asks for a stylesheet. With nosniff, Chromium would hide the status of the page from its console, and from
	// what drives it.
	isForStyle bool
}

// Format returns the name of the format.
func (r *Representation) Format() string { return r.format.name }

// WriteTo implements io.WriterTo. It is called once.
func (r *Representation) WriteTo(w io.Writer) (int64, error) {
	if r.content.file != nil {
		n, err := io.Copy(w, io.LimitReader(r.content.file, r.content.size))
		_, isUnreadable := errors.AsType[*fs.PathError](err) // no write fails with that
		if isUnreadable || err == nil && n < r.content.size {
			err = ErrCut
		}
		return n, err
	}
	n, err := w.Write(r.content.text)
	return int64(n), err
}

// Free releases what the content is in.
func (r *Representation) Free() {
	if r.content.buffer != nil {
		freeBuffer(r.content.buffer)
	}
	if r.content.file != nil {
		r.content.file.Close()
	}
}

// isSites reports whether a field is the site's, and not the application's: where the page replaces a response, it gets
// the value from before the response. The others are policies of the application's page, and what it loads.
func isSites(field string) bool {
	switch http.CanonicalHeaderKey(field) {
	case "Content-Language", policyField, "Content-Security-Policy-Report-Only", "Link", "Server",
		"Connection-Allowlist", "Document-Isolation-Policy", "Document-Policy", "Feature-Policy", "Integrity-Policy",
		"Integrity-Policy-Report-Only", "Permissions-Policy", "Speculation-Rules":
		return true
	}
	return false
}

const policyField = "Content-Security-Policy"

// SiteHeader has the fields of the site, each as one line.
type SiteHeader struct {
	server string
	others []siteField
	inline [1]siteField // what others begins in, without an allocation: few sites have more
}

type siteField struct{ name, line string }

// Read copies the site's fields, because Caddy's header handler (headers.HeaderOps.ApplyTo) changes values in place.
func (s *SiteHeader) Read(header http.Header) {
	s.others = s.inline[:0]
	for field, values := range header {
		line := strings.Join(values, ", ")
		switch {
		case line == "" || !isSites(field):
		case field == "Server":
			s.server = line
		default:
			s.others = append(s.others, siteField{field, line})
		}
	}
}

// restore restores the site's fields. A response without Server gets none: a handler has taken it away.
func (s *SiteHeader) restore(header http.Header) {
	for field := range header {
		if isSites(field) && field != "Server" {
			delete(header, field)
		}
	}
	for _, field := range s.others {
		header[field.name] = []string{field.line}
	}
	if s.server == "" {
		delete(header, "Server")
	} else if header["Server"] != nil {
		header["Server"] = []string{s.server}
	}
}

// SetHeader sets the header of a response to that of the page, without the fields of another body. The site's fields
// are restored from site, if that is not nil. A Content-Security-Policy of the site's overrides the page's.
func (r *Representation) SetHeader(header http.Header, site *SiteHeader) {
	for field := range header {
		if isOfAnotherBody(field) {
			delete(header, field)
		}
	}
	if site != nil {
		site.restore(header)
	}

	// The values are not shared between responses: Caddy's header handler changes values in place.
	values := make([]string, 0, 6)
	set := func(field, value string) {
		values = append(values, value)
		n := len(values)
		header[field] = values[n-1 : n : n]
	}

	set("Content-Type", r.format.contentType)
	set("Content-Length", strconv.FormatInt(r.content.size, 10))
	if r.encoding != "" {
		set("Content-Encoding", r.encoding)
	}
	if !r.isForStyle {
		set("X-Content-Type-Options", "nosniff")
	}
	set("Cache-Control", "no-store")
	r.hasPolicy = r.isBuiltIn && r.format.policy != "" && len(header[policyField]) == 0
	if r.hasPolicy {
		set(policyField, r.format.policy)
	}
	if header["Vary"] == nil {
		set("Vary", r.vary())
	} else {
		r.AddToVary(header)
	}
}

// AddToVary adds the fields of the request on which the page depends, unless they are there.
func (r *Representation) AddToVary(header http.Header) { accept.AddToVary(header, r.vary()) }

// vary returns the fields of the request on which the page depends.
func (r *Representation) vary() string {
	vary := "Accept" // also with one format: nosniff depends on it
	if r.variesByClient {
		vary = request.VaryByClient
	}
	if r.mayBeEncoded {
		vary += ", Accept-Encoding"
	}
	return vary
}

// HidePolicy takes the page's own policy out of a header, before operations that are meant for policies of the site's.
// SetHeader sets it again, if they have set none. The field stays without a value, so that a default of the site's,
// which is not for a response that has a policy, does not take the place of the page's.
func (r *Representation) HidePolicy(header http.Header) {
	if r.hasPolicy {
		header[policyField] = []string{}
	}
}

// isOfAnotherBody reports whether a header field is about another body than the page, whoever set it: a handler that
// failed, a response that was replaced, or the site. Servers of today send these:
//
//   - metadata and digests (RFC 9110, section 8; RFC 9530), most with a name in Content-, and others that say which
//     variant the body is, its date, or the version of its format
//   - signatures, which cover the old digest (RFC 9421)
//   - freshness (RFC 9111, section 5), also for one kind of cache, which ignores Cache-Control (RFC 9213, section 2.2),
//     and fields that let a client use the body for other requests (RFC 9842; No-Vary-Search)
//   - framing and forwarding in pieces (RFC 9112; Incremental)
//   - the outcome of the request, for a FastCGI server, Rack's routers and clients
//   - fields that act on the body: X-Accel- (nginx), X-Sendfile (Apache, lighttpd) and X-LiteSpeed-Location make a
//     server in front send a file, browsers follow Refresh and SourceMap, and gRPC clients read messages after a
//     Grpc-Status
func isOfAnotherBody(field string) bool {
	if isSites(field) { // also if it begins with Content-
		return false
	}
	switch field = http.CanonicalHeaderKey(field); field {
	case "Digest", "Repr-Digest", "Unencoded-Digest", "Etag", "Last-Modified", "Accept-Ranges", "Memento-Datetime",
		"Alternates", "Tcn", "Mime-Version", "Odata-Version", "X-Inertia", "Preference-Applied",
		"Signature", "Signature-Input",
		"Cache-Control", "Expires", "Pragma", "Age", "Warning", "Surrogate-Control", "Edge-Control",
		"Use-As-Dictionary", "No-Vary-Search",
		"Trailer", "Transfer-Encoding", "Incremental",
		"Status", "X-Cascade", "Retry-After",
		"Refresh", "Sourcemap", "X-Sourcemap", "X-Lighttpd-Send-File", "X-Litespeed-Location", "X-Reproxy-Url":
		return true
	}
	for _, prefix := range []string{"Content-", "X-Accel-", "X-Sendfile", "Grpc-", http.TrailerPrefix} {
		if strings.HasPrefix(field, prefix) {
			return true
		}
	}
	return strings.HasSuffix(field, "-Cache-Control")
}
