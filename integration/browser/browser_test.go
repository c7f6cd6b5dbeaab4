// Package browser tests the page in headless Chromium, with axe-core from `npm ci`, and saves the screenshots in docs/.
// It is a separate module, so that the plugin does not require a browser's driver.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const site = "http://127.0.0.1:8080"

// TestMain runs the quickstart, and beside it the sites of docs/headers.md that have a policy.
func TestMain(m *testing.M) {
	code, err := withQuickstart(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withQuickstart(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	caddy := filepath.Join(dir, "caddy")
	build := exec.Command("go", "build", "-C", "../..", "-o", caddy, "./cmd/caddy")
	if output, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building Caddy: %w\n%s", err, output)
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := writeSites(config); err != nil {
		return 0, err
	}
	var output strings.Builder
	cmd := exec.Command(caddy, "run", "--config", config)
	cmd.Dir, cmd.Stderr = "../..", &output
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(site)
		if err == nil {
			res.Body.Close()
			return run(), nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("the quickstart does not answer: %w\n%s", err, output.String())
		}
	}
}

// writeSites writes the Caddyfile. The document's two sites get the ports 8083 and 8084. The site at 8085 has a policy
// that blocks the page's style.
func writeSites(file string) error {
	quickstart, err := os.ReadFile("../../examples/quickstart/Caddyfile")
	if err != nil {
		return err
	}
	headers, err := os.ReadFile("../../docs/headers.md")
	if err != nil {
		return err
	}
	_, section, _ := strings.Cut(string(headers), "## A site with a Content-Security-Policy")
	sites := string(quickstart)
	for i, block := range strings.Split(section, "```caddyfile\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		address := fmt.Sprint("http://127.0.0.1:", 8083+i)
		inTest := strings.NewReplacer("example.com", address, "localhost:9000", "127.0.0.1:8081")
		sites += inTest.Replace(block)
	}
	sites += "http://127.0.0.1:8085 {\nheader Content-Security-Policy \"default-src 'self'\"\nnot_found\n}\n"
	return os.WriteFile(file, []byte(sites), 0o600)
}

// view is a way to look at a page.
type view struct {
	width, height int64
	phone         bool
	scheme        string // light or dark
}

// seen is what was seen of a page.
type seen struct {
	text                   string
	fetched                []string
	complaints             []string // of the console, errors and violations of the policy
	scrollWidth, viewWidth int64
	background             string
	screenshot             []byte
}

// look opens a page in a new browser.
func look(t *testing.T, url string, v view) seen {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()

	var s seen
	var mu sync.Mutex
	chromedp.ListenTarget(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			s.fetched = append(s.fetched, e.Request.URL)
		case *runtime.EventConsoleAPICalled:
			s.complaints = append(s.complaints, fmt.Sprint("console: ", e.Type))
		case *runtime.EventExceptionThrown:
			s.complaints = append(s.complaints, "exception: "+e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			// a 404 page is a 404
			if !strings.Contains(e.Entry.Text, "the server responded with a status of 404") {
				s.complaints = append(s.complaints, fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text))
			}
		}
	})
	err := chromedp.Run(ctx,
		network.Enable(), runtime.Enable(), log.Enable(),
		emulation.SetDeviceMetricsOverride(v.width, v.height, 1, v.phone),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}),
		chromedp.Navigate(url),
		chromedp.Evaluate("document.body.innerText", &s.text),
		chromedp.Evaluate("document.documentElement.scrollWidth", &s.scrollWidth),
		chromedp.Evaluate("window.innerWidth", &s.viewWidth),
		chromedp.Evaluate("getComputedStyle(document.body).backgroundColor", &s.background),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			s.screenshot, err = page.CaptureScreenshot().Do(ctx)
			return err
		}),
		chromedp.ActionFunc(func(ctx context.Context) error { return accessible(ctx, t) }),
	)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return s
}

// accessible runs axe-core in the page. The debugger injects it, whatever the page's policy is.
func accessible(ctx context.Context, t *testing.T) error {
	source, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		return fmt.Errorf("%w; run npm ci", err)
	}
	var result string
	err = chromedp.Run(ctx,
		chromedp.Evaluate(string(source)+"\n;undefined", nil),
		chromedp.Evaluate("axe.run().then(r => JSON.stringify({passes: r.passes.length, violations: r.violations}))", &result,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if err != nil {
		return fmt.Errorf("axe-core: %w", err)
	}
	var found struct {
		Passes     int
		Violations []struct {
			ID, Help string
			Nodes    []struct{ HTML string }
		}
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		return err
	}
	if found.Passes == 0 {
		t.Error("axe-core has checked nothing")
	}
	for _, v := range found.Violations {
		t.Errorf("axe-core: %s: %s: %v", v.ID, v.Help, v.Nodes)
	}
	return nil
}

func textPage(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 404 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Fatalf("got %s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	return string(body)
}

func TestPage(t *testing.T) {
	const short = site + "/docs/nothing?x=1"
	long := site + "/shop/" + strings.Repeat("nothing-", 125) + strings.Repeat("x", 974) + "?q=%3Cscript%3E"

	backgrounds := make(map[string]bool)
	const hostile = site + `/"><script>alert(1)</script>?'<img src=x onerror=alert(1)>{{.}}`
	for name, tt := range map[string]struct {
		url        string
		view       view
		screenshot string
	}{
		"light":       {short, view{1000, 560, false, "light"}, "page.png"},
		"dark":        {short, view{1000, 560, false, "dark"}, "page-dark.png"},
		"phone":       {short, view{375, 560, true, "light"}, "page-phone.png"},
		"long, light": {long, view{320, 560, true, "light"}, ""},
		"long, dark":  {long, view{320, 560, true, "dark"}, ""},
		"hostile":     {hostile, view{1000, 560, false, "light"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := look(t, tt.url, tt.view)
			var lines []string
			for line := range strings.Lines(s.text) {
				if line = strings.TrimSpace(line); line != "" {
					lines = append(lines, line)
				}
			}
			if tt.url == short || tt.url == long {
				if got, want := strings.Join(lines, "\n")+"\n", textPage(t, tt.url); got != want {
					t.Errorf("got the text\n%s\nwant\n%s", got, want)
				}
			} else if len(lines) != 5 {
				t.Errorf("got the text\n%s", s.text)
			}
			for i, url := range s.fetched {
				if i > 0 && url != site+"/favicon.ico" {
					t.Errorf("the page fetches %s", url)
				}
			}
			if len(s.fetched) == 0 {
				t.Error("no request was seen")
			}
			for _, complaint := range s.complaints {
				t.Error(complaint)
			}
			if s.scrollWidth > s.viewWidth || s.viewWidth != tt.view.width {
				t.Errorf("the page is %d wide in a view of %d", s.scrollWidth, s.viewWidth)
			}
			backgrounds[tt.view.scheme+s.background] = true
			if tt.screenshot != "" {
				if err := os.WriteFile(filepath.Join("../../docs", tt.screenshot), s.screenshot, 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if len(backgrounds) != 2 {
		t.Errorf("light and dark have the backgrounds %v", backgrounds)
	}
}

// TestPolicyOfTheSite looks at the page under the policies of docs/headers.md, and under one that blocks its style.
func TestPolicyOfTheSite(t *testing.T) {
	light := view{1000, 560, false, "light"}
	styled := look(t, site+"/docs/nothing", light).background
	for port, hasStyle := range map[int]bool{8083: true, 8084: true, 8085: false} {
		s := look(t, fmt.Sprintf("http://127.0.0.1:%d/nothing", port), light)
		if !strings.Contains(s.text, "HTTP ERROR 404") {
			t.Errorf("port %d: got the text\n%s", port, s.text)
		}
		if isStyled := s.background == styled; isStyled != hasStyle {
			t.Errorf("port %d: got the background %s, want a style: %t", port, s.background, hasStyle)
		}
		if hasStyle && len(s.complaints) > 0 {
			t.Errorf("port %d: got the complaints %q", port, s.complaints)
		}
	}
}
