package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// browser is a browser that a test drives. Its methods end the test if they fail.
type browser interface {
	open(url string)
	reload()
	eval(expression string) string // of JavaScript, for a string or a promise of one
	complaints() []string          // what the console has until now
}

// inEachBrowser runs a test in Chromium and in Firefox.
func inEachBrowser(t *testing.T, test func(*testing.T, browser)) {
	t.Run("Chromium", func(t *testing.T) { test(t, startChromium(t)) })
	t.Run("Firefox", func(t *testing.T) { test(t, startFirefox(t)) })
}

const visibleText = "document.body.innerText"

const installWorker = `navigator.serviceWorker.register("/worker.js").
	then(() => navigator.serviceWorker.ready).then(() => "installed")`

// TestPageBehindAServiceWorker has a worker that fetches each request, as Workbox's NetworkFirst does. Firefox then
// sends a navigation with the Sec-Fetch-Mode of a script's request.
func TestPageBehindAServiceWorker(t *testing.T) {
	const app = `
	header / Content-Type text/html
	respond / "<!DOCTYPE html><title>An app</title>"
	header /worker.js Content-Type text/javascript
	respond /worker.js "addEventListener('fetch', event => event.respondWith(fetch(event.request)))"
	reverse_proxy 127.0.0.1:8082
}
`
	const pages, browsers = site, "http://127.0.0.1:8081"
	startCaddy(t, pages+" {\nnot_found\n"+app+
		browsers+" {\nnot_found {\nreplace browsers\n}\n"+app+
		"http://127.0.0.1:8082 {\nheader Content-Type text/html\nrespond OOPS 404\n}\n")
	inEachBrowser(t, func(t *testing.T, b browser) {
		for _, origin := range []string{pages, browsers} {
			b.open(origin)
			b.eval(installWorker)
			b.open(origin)
			if fetched := b.eval("fetch('/missing').then(response => response.text())"); fetched != "OOPS" {
				t.Errorf("%s: a script gets %q, want the upstream's answer", origin, fetched)
			}
			b.open(origin + "/missing")
			opened := b.eval(visibleText)
			b.reload()
			reloaded := b.eval(visibleText)
			for _, got := range []string{opened, reloaded} {
				if !strings.Contains(got, "HTTP ERROR 404") {
					t.Errorf("%s: got %q, want the page", origin, got)
				}
			}
			if b.eval("String(navigator.serviceWorker.controller)") == "null" {
				t.Errorf("%s: the worker controls no page", origin)
			}
		}
	})
}

// TestPageHasTheIconOfTheSite has an icon at the address where browsers look for it.
func TestPageHasTheIconOfTheSite(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, b browser) {
		asked := make(chan bool, 100)
		icon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/svg+xml")
			fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"/>`)
			asked <- true
		}))
		defer icon.Close()
		startCaddy(t, site+" {\nnot_found\nreverse_proxy /favicon.ico "+icon.URL+"\n}\n")
		b.open(site + "/missing")
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Error("the browser asks for no icon")
		}
		if complaints := b.complaints(); len(complaints) > 0 {
			t.Errorf("got the complaints %q", complaints)
		}
	})
}

// missingFiles is a site whose page lacks a stylesheet and a script. The 404 page of the stylesheet's address has the
// text of a style, and the site's page is in quirks mode, in which browsers take text for a style.
const missingFiles = site + ` {
	not_found {
		message "{} body { color: red }"
	}
	header / Content-Type text/html
	respond / "<link rel=stylesheet href=/missing.css><script src=/missing.js></script><p>A page"
}
`

// TestMissingFilesAreA404 reads the status as a page and as the DevTools see it. Chromium hides the status of a
// stylesheet that has nosniff.
func TestMissingFilesAreA404(t *testing.T) {
	startCaddy(t, missingFiles)
	b := startChromium(t)
	b.open(site)
	responses := b.noted().responses
	timing := b.eval("String(performance.getEntriesByType('resource').map(e => e.name + ' ' + e.responseStatus))")
	for _, want := range []response{
		{url: site + "/missing.css", status: 404},
		{url: site + "/missing.js", status: 404, hasNosniff: true},
	} {
		if !slices.Contains(responses, want) {
			t.Errorf("the DevTools have the responses %v, want %v", responses, want)
		}
		if !strings.Contains(timing, want.url+" 404") {
			t.Errorf("the page has the statuses %q, want %q with 404", timing, want.url)
		}
	}
}

func TestMissingStylesheetStylesNothing(t *testing.T) {
	startCaddy(t, missingFiles)
	inEachBrowser(t, func(t *testing.T, b browser) {
		b.open(site)
		if color := b.eval("getComputedStyle(document.body).color"); color != "rgb(0, 0, 0)" {
			t.Errorf("the page has the color %s", color)
		}
	})
}

// directions says of each text of a page whether its first letter is left or right of its last one.
const directions = `(() => {
	const lines = []
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	while (texts.nextNode()) {
		const node = texts.currentNode, text = node.data.trim()
		if (text === "") continue
		const range = document.createRange()
		const left = letter => {
			range.setStart(node, letter)
			range.setEnd(node, letter + 1)
			return range.getBoundingClientRect().left
		}
		const first = node.data.indexOf(text)
		lines.push((left(first) < left(first + text.length - 1) ? "right: " : "left: ") + text)
	}
	return lines.join("\n")
})()`

// TestDirection has a message and a footer in languages that are written to the left.
func TestDirection(t *testing.T) {
	startCaddy(t, site+` {
	not_found {
		message "הדף לא נמצא."
		footer "متجرنا الصغير."
	}
}
`)
	const want = `right: HTTP ERROR 404
left: הדף לא נמצא.
right: URI:
right: http://127.0.0.1:8080/missing
right: STATUS:
right: 404
right: MESSAGE:
left: הדף לא נמצא.
left: متجرنا الصغير.`
	inEachBrowser(t, func(t *testing.T, b browser) {
		b.open(site + "/missing")
		if got := b.eval(directions); got != want {
			t.Errorf("the texts go\n%s\nwant\n%s", got, want)
		}
	})
}

// TestBackReachesTheApplication has a visitor reload at a missing address of an application, whose entries of the
// history are then those of the page. Back loads the application once.
func TestBackReachesTheApplication(t *testing.T) {
	startCaddy(t, site+` {
	not_found
	header / Content-Type text/html
	respond / "<!DOCTYPE html><p>An app<script>sessionStorage.loads = 1 + Number(sessionStorage.loads ?? 0)</script>"
}
`)
	inEachBrowser(t, func(t *testing.T, b browser) {
		b.open(site)
		b.eval(`history.pushState(null, "", "/missing") || "moved"`)
		b.reload()
		if got := b.eval(visibleText); !strings.Contains(got, "HTTP ERROR 404") {
			t.Fatalf("got %q, want the page", got)
		}
		b.eval(`setTimeout(() => history.back()) && "back"`)
		time.Sleep(2 * time.Second)
		if got := b.eval(visibleText + ` + sessionStorage.loads`); got != "An app2" {
			t.Errorf("back from the page, got %q, want the application, loaded for the second time", got)
		}
	})
}
