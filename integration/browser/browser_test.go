// Package browser tests the page in Chromium, with axe-core from `npm ci`, and in Firefox, both headless. It saves the
// screenshots in docs/. It is a separate module, so that the plugin does not require a browser's driver.
package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const site = "http://127.0.0.1:8080"

// caddy is the path of a Caddy with the plugin.
var caddy string

// TestMain builds Caddy once for all tests, because linking takes as long as a test.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	caddy = filepath.Join(dir, "caddy")
	code := 1
	build := exec.Command("go", "build", "-C", "../..", "-o", caddy, "./cmd/caddy")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Printf("building Caddy: %v\n%s", err, output)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// startCaddy runs Caddy until the test ends. One of its sites is [site].
func startCaddy(t *testing.T, caddyfile string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(caddyfile), 0o600); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	cmd := exec.CommandContext(t.Context(), caddy, "run", "--config", config)
	cmd.Dir = "../.."
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		<-exited // the context has killed it by now
		if t.Failed() {
			t.Log(output.String())
		}
	})
	for range 600 {
		res, err := client.Get(site)
		if err == nil {
			res.Body.Close()
			return
		}
		select {
		case <-exited:
			t.Fatal("Caddy has ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("Caddy does not answer")
}

var client = &http.Client{Timeout: 10 * time.Second}

// quickstart returns the Caddyfile of the quickstart, and three sites more. The two sites of docs/headers.md that have
// a policy get the ports 8083 and 8084. The site at 8085 has a policy that blocks the page's style.
func quickstart(t *testing.T) string {
	t.Helper()
	caddyfile := readFile(t, "../../examples/quickstart/Caddyfile")
	headers := readFile(t, "../../docs/headers.md")
	_, section, _ := strings.Cut(headers, "## A site with a Content-Security-Policy")
	blocks := strings.Split(section, "```caddyfile\n")
	for i, block := range blocks[1:] {
		block, _, _ = strings.Cut(block, "```")
		address := fmt.Sprint("http://127.0.0.1:", 8083+i)
		inTest := strings.NewReplacer("example.com", address, "localhost:9000", "127.0.0.1:8081")
		caddyfile += inTest.Replace(block)
	}
	return caddyfile + "http://127.0.0.1:8085 {\nheader Content-Security-Policy \"default-src 'self'\"\nnot_found\n}\n"
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// view is a way to look at a page.
type view struct {
	width  int64
	phone  bool
	scheme string // light or dark
}

// desktop is a wide and light view.
var desktop = view{width: 1000, scheme: "light"}

// seen is what was seen of a page.
type seen struct {
	notes
	text                   string
	scrollWidth, viewWidth int64
	background             string
	screenshot             []byte
}

// look opens a page in a new Chromium.
func look(t *testing.T, url string, v view) seen {
	t.Helper()
	b := startChromium(t)
	var s seen
	var axe string
	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: v.scheme}
	b.run(
		emulation.SetDeviceMetricsOverride(v.width, 560, 1, v.phone),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme}),
		chromedp.Navigate(url),
		chromedp.Evaluate("document.body.innerText", &s.text),
		chromedp.Evaluate("document.documentElement.scrollWidth", &s.scrollWidth),
		chromedp.Evaluate("window.innerWidth", &s.viewWidth),
		chromedp.Evaluate("getComputedStyle(document.body).backgroundColor", &s.background),
		chromedp.CaptureScreenshot(&s.screenshot),
		// the debugger injects axe-core, whatever the page's policy is
		chromedp.Evaluate(readFile(t, "node_modules/axe-core/axe.min.js")+"\n;undefined", nil),
		chromedp.Evaluate(runAxe, &axe, awaitPromise),
	)
	wantAccessible(t, axe)
	s.notes = b.noted()
	return s
}

// runAxe has axe-core check its rules, and that texts have a contrast of 7 to 1.
const runAxe = "axe.run({rules: {'color-contrast-enhanced': {enabled: true}}})" +
	".then(r => JSON.stringify({passes: r.passes.length, violations: r.violations}))"

// wantAccessible reads the result of axe-core, which `npm ci` installs.
func wantAccessible(t *testing.T, result string) {
	t.Helper()
	var found struct {
		Passes     int
		Violations []struct {
			ID, Help string
			Nodes    []struct{ HTML string }
		}
	}
	err := json.Unmarshal([]byte(result), &found)
	if err != nil || found.Passes == 0 {
		t.Errorf("axe-core has checked nothing: %v", err)
	}
	for _, v := range found.Violations {
		t.Errorf("axe-core: %s: %s: %v", v.ID, v.Help, v.Nodes)
	}
}

func textPage(t *testing.T, url string) string {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	contentType := res.Header.Get("Content-Type")
	if res.StatusCode != 404 || !strings.HasPrefix(contentType, "text/plain") {
		t.Fatalf("got %s, %s", res.Status, contentType)
	}
	return string(body)
}

var blankLines = regexp.MustCompile(`\n+`)

func TestPage(t *testing.T) {
	startCaddy(t, quickstart(t))
	const short = site + "/docs/nothing?x=1"
	const hostile = site + `/"><script>alert(1)</script>?'<img src=x onerror=alert(1)>{{.}}`
	segment := strings.Repeat("nothing-", 125) + strings.Repeat("x", 974)
	long := site + "/shop/" + segment + "?q=%3Cscript%3E"

	backgrounds := make(map[string]bool)
	for name, tt := range map[string]struct {
		url        string
		view       view
		screenshot string
	}{
		"light":       {url: short, view: desktop, screenshot: "page.png"},
		"dark":        {url: short, view: view{width: 1000, scheme: "dark"}, screenshot: "page-dark.png"},
		"phone":       {url: short, view: view{width: 375, phone: true, scheme: "light"}, screenshot: "page-phone.png"},
		"long, light": {url: long, view: view{width: 320, phone: true, scheme: "light"}},
		"long, dark":  {url: long, view: view{width: 320, phone: true, scheme: "dark"}},
		"hostile":     {url: hostile, view: desktop},
	} {
		t.Run(name, func(t *testing.T) {
			s := look(t, tt.url, tt.view)
			text := blankLines.ReplaceAllString(s.text, "\n") + "\n"
			if tt.url == hostile {
				if strings.Count(text, "\n") != 5 {
					t.Errorf("got the text\n%s", text)
				}
			} else if want := textPage(t, tt.url); text != want {
				t.Errorf("got the text\n%s\nwant\n%s", text, want)
			}
			if len(s.fetched) == 0 {
				t.Fatal("no request was seen")
			}
			for _, url := range s.fetched[1:] {
				if url != site+"/favicon.ico" {
					t.Errorf("the page fetches %s", url)
				}
			}
			if len(s.complaints) > 0 {
				t.Errorf("got the complaints %q", s.complaints)
			}
			if s.scrollWidth > s.viewWidth || s.viewWidth != tt.view.width {
				t.Errorf("the page is %d wide in a view of %d", s.scrollWidth, s.viewWidth)
			}
			backgrounds[tt.view.scheme+s.background] = true
			if tt.screenshot != "" {
				file := "../../docs/" + tt.screenshot
				if err := os.WriteFile(file, s.screenshot, 0o644); err != nil {
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
	startCaddy(t, quickstart(t))
	styled := look(t, site+"/docs/nothing", desktop).background
	for url, hasStyle := range map[string]bool{
		"http://127.0.0.1:8083/nothing": true,
		"http://127.0.0.1:8084/nothing": true,
		"http://127.0.0.1:8085/nothing": false,
	} {
		t.Run(url, func(t *testing.T) {
			s := look(t, url, desktop)
			if !strings.Contains(s.text, "HTTP ERROR 404") {
				t.Errorf("got the text\n%s", s.text)
			}
			isStyled := s.background == styled
			isQuiet := len(s.complaints) == 0
			if isStyled != hasStyle || isQuiet != hasStyle {
				t.Errorf("got the background %s and the complaints %q", s.background, s.complaints)
			}
		})
	}
}
