package testcaddy

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
)

// Recording is a 404 of a real application, as it went through a Caddy to a real client.
type Recording struct {
	Application    string // with its version
	Client         string
	Kind           string // what the client wanted, if it has a router
	Method, Target string
	Request        http.Header
	Response       http.Header
	BodyBytes      int64  `json:"body_bytes"`
	BodyBegins     string `json:"body_begins"`

	// IsOfStandIn says that only the request is recorded, of a client whose server can be any.
	IsOfStandIn bool `json:"stand_in"`

	// PassesTo are the clients to whom it passes in the mode pages: "recorded" is its own one, "browser" opens a page, and
	// "program" names no HTML. All others get the page.
	PassesTo []string `json:"passes_to"`

	// PassesIn are the modes, of pages and browsers, in which it passes to its own client.
	PassesIn []string `json:"passes_in"`
}

func (r Recording) String() string {
	client := strings.TrimSpace(r.Client + " " + r.Kind)
	return strings.Join([]string{r.Application, client, r.Method + " " + r.Target}, ", ")
}

// Recordings returns the 404s that say to whom they pass, and RouterRecordings those of applications with a router. The
// working directory has to be that of the repository.
var (
	Recordings       = sync.OnceValue(func() []Recording { return readTable[Recording]("404s.json") })
	RouterRecordings = sync.OnceValue(func() []Recording { return readTable[Recording]("routers.json") })
)

// Replay sends the response, with a field that no page has.
func (r Recording) Replay(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.Response)
	w.Header().Set("Content-Location", "/recorded")
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, r.BodyBegins)
		_, _ = io.CopyN(w, Endless{}, r.BodyBytes-int64(len(r.BodyBegins)))
	}
}

// Source is what was read of an application, in place of a recording.
type Source struct {
	Application string
	Keep        string // a field of its 404s, which a keep can name
}

// Sources returns all of them. The working directory has to be that of the repository.
var Sources = sync.OnceValue(func() []Source { return readTable[Source]("404s-sources.json") })

// RecordedRequest is what a real client sends, and what it should get. Of the header, it has the fields that decide,
// and the User-Agent of a program.
type RecordedRequest struct {
	Client, Method string
	Request        http.Header
	Kind           string // which part of a page asks; a program's request has none
	Note           string // what the kind does not say

	Format string // of the page

	// PassesIn are the modes, of pages and browsers, in which an application's 404 passes, whether it is HTML or plain
	// text. In the other modes, the page takes its place.
	PassesIn []string `json:"passes_in"`
}

func (r RecordedRequest) String() string {
	return strings.TrimSpace(r.Client + " " + r.Kind + " " + r.Note)
}

// RecordedRequests returns those of programs, and those of browsers. The working directory has to be that of the
// repository.
var RecordedRequests = sync.OnceValue(func() []RecordedRequest {
	programs := readTable[RecordedRequest]("clients.json")
	return append(programs, readTable[RecordedRequest]("browsers.json")...)
})

// readTable reads a file of integration/testdata that has an object on each line.
func readTable[T any](name string) (rows []T) {
	content, err := os.ReadFile("integration/testdata/" + name)
	if err == nil {
		err = json.Unmarshal(content, &rows)
	}
	if err != nil {
		panic(err)
	}
	return rows
}
