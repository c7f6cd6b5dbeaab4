package page

import "sync"

// Page is a page for one request.
//
// The fields are clean, whatever a client sent: URI and Message are printable ASCII without `"`, `<`, `>`, `\` and
// braces, and Footer is one line of valid UTF-8 without control characters.
type Page struct {
	URI, Message []byte
	Footer       string

	body []byte // once it is rendered
}

// The heading of a page is its message after headingStart, and its status is always 404.
const headingStart = "HTTP ERROR 404 "

// missingPage is the path, below the context path, that the message names for every unknown address.
const missingPage = "/missing.html"

var pool = sync.Pool{New: func() any { return new(Page) }}

// Free gives a page back, for another request. One that grew over a very long address is left to the garbage collector.
func (pg *Page) Free() {
	const maxReused = 64 << 10
	if cap(pg.URI)+cap(pg.Message)+cap(pg.body) <= maxReused {
		pool.Put(pg)
	}
}
