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

// Representation is a page as it is sent. It is kept small; otherwise, the stack of each HTTP/2 stream has to grow,
// which once took 14 % of the CPU time of an HTML page.
type Representation struct {
	format         *format
	encoding       string // empty: none
	content        content
	variesByClient bool // other clients get the response that it replaces
	mayBeEncoded   bool // for this client or for another
	isBuiltIn      bool // it may need a policy
	hasPolicy      bool // the header contains it, and none of the site's

	// A browser asks for a stylesheet. With nosniff, Chromium would hide the status of the page from its console, and from
	// tools that drive the browser.
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

// Free releases the buffer or closes the file of the content.
func (r *Representation) Free() {
	if r.content.buffer != nil {
		freeBuffer(r.content.buffer)
	}
	if r.content.file != nil {
		r.content.file.Close()
	}
}

// isSites reports whether a field belongs to the site: if the page replaces a response, the field gets back its value
// from before the response. What the application has set is a policy for its own page, or names what that page loads.
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

// SiteHeader holds the fields of the site, each as one line.
type SiteHeader struct {
	server string
	others []siteField
	inline [1]siteField // where others begins, without an allocation: few sites have more
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

// restore restores the site's fields. If the response has no Server, a handler has removed it, and it stays away.
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

// SetHeader turns the header of a response into that of the page. It deletes the fields of another body, and restores
// the site's fields from site, unless site is nil. A Content-Security-Policy of the site overrides the page's.
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

// HidePolicy removes the page's own policy from a header, before operations that are meant for the site's. SetHeader
// sets it again if they have set none. The field stays, without a value, so that the site's default for responses
// without a policy does not replace the page's.
func (r *Representation) HidePolicy(header http.Header) {
	if r.hasPolicy {
		header[policyField] = []string{}
	}
}

// isOfAnotherBody reports whether a header field describes another body than the page, whoever set it: a handler that
// failed, a response that was replaced, or the site. The fields are those that servers of today send.
func isOfAnotherBody(field string) bool {
	if isSites(field) { // also if it begins with Content-
		return false
	}
	switch field = http.CanonicalHeaderKey(field); field {
	case
		// metadata and digests (RFC 9110, section 8; RFC 9530), with the variant, the date and the version of the format
		"Digest", "Repr-Digest", "Unencoded-Digest", "Etag", "Last-Modified", "Accept-Ranges", "Memento-Datetime",
		"Alternates", "Tcn", "Mime-Version", "Odata-Version", "X-Inertia", "Preference-Applied",
		"Signature", "Signature-Input", // of the old digest (RFC 9421)
		// freshness (RFC 9111, section 5), and use for other requests (RFC 9842)
		"Cache-Control", "Expires", "Pragma", "Age", "Warning", "Surrogate-Control", "Edge-Control",
		"Use-As-Dictionary", "No-Vary-Search",
		"Trailer", "Transfer-Encoding", "Incremental", // framing, and forwarding in pieces (RFC 9112)
		"Status", "X-Cascade", "Retry-After", // the outcome, for a FastCGI server, Rack's routers and clients
		// what makes a browser load something, or a server in front send a file
		"Refresh", "Sourcemap", "X-Sourcemap", "X-Lighttpd-Send-File", "X-Litespeed-Location", "X-Reproxy-Url":
		return true
	}
	// nginx's X-Accel-Redirect and Apache's X-Sendfile send a file; gRPC clients read messages after a Grpc-Status
	for _, prefix := range []string{"Content-", "X-Accel-", "X-Sendfile", "Grpc-", http.TrailerPrefix} {
		if strings.HasPrefix(field, prefix) {
			return true
		}
	}
	return strings.HasSuffix(field, "-Cache-Control") // for one kind of cache (RFC 9213, section 2.2)
}
