package integration

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestLinksLeadSomewhere follows the relative links of the documents, and the paths with ../ in the comments of
// examples. Every file in docs/ and every example has a link.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Chdir("..")
	headings := make(map[string][]string) // of each file, as GitHub names them
	links := make(map[string][]string)
	for _, file := range documents(t) {
		headings[file], links[file] = headingsAndLinks(t, file)
	}
	inComment := regexp.MustCompile(`(?m)#.*?(\.\./[\w./-]*\w)`)
	for _, file := range exampleFiles(t) {
		content := readFile(t, file)
		for _, match := range inComment.FindAllStringSubmatch(content, -1) {
			links[file] = append(links[file], match[1])
		}
	}

	reached := make(map[string]bool)
	for from, destinations := range links {
		for _, link := range destinations {
			if strings.Contains(link, "://") {
				continue
			}
			path, fragment, _ := strings.Cut(link, "#")
			to := from
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(from), path))
				reached[to] = true
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s has a link to %s, which leads nowhere", from, link)
			}
			if fragment != "" && !slices.Contains(headings[to], fragment) {
				t.Errorf("%s has a link to %s, but %s has only the headings %q", from, link, to, headings[to])
			}
		}
	}
	for _, file := range glob(t, "docs/*") {
		if !reached[file] {
			t.Errorf("no document has a link to %s", file)
		}
	}
	examples := readFile(t, "examples/README.md")
	for _, file := range glob(t, "examples/*/*") {
		folder := filepath.Base(filepath.Dir(file))
		if !strings.Contains(examples, "| ["+folder+"](") {
			t.Errorf("examples/README.md lacks %s", folder)
		}
	}
}

// headingsAndLinks reads a document in Markdown.
func headingsAndLinks(t *testing.T, file string) (headings, links []string) {
	t.Helper()
	source := []byte(readFile(t, file))
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM))
	doc := markdown.Parser().Parse(text.NewReader(source))
	_ = ast.Walk(doc, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			heading := string(n.Lines().Value(source))
			headings = append(headings, anchor(heading))
		case *ast.Link:
			links = append(links, string(n.Destination))
		case *ast.Image:
			links = append(links, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
	return headings, links
}

// TestApplicationsAreRecorded finds each application of the document's table among the recorded 404s, or, if it has an
// asterisk, among those whose sources were read. Several words that begin with a small letter are a description.
func TestApplicationsAreRecorded(t *testing.T) {
	t.Chdir("..")
	var recorded, read strings.Builder
	for _, rec := range slices.Concat(testcaddy.Recordings(), testcaddy.RouterRecordings()) {
		fmt.Fprintln(&recorded, rec)
	}
	for _, source := range testcaddy.Sources() {
		fmt.Fprintln(&read, source.Application)
	}
	row := regexp.MustCompile(`(?m)^\| ([^|]*?) \| `)
	qualifier := regexp.MustCompile(` (?:with|in|of|by) [^,;]*`)
	separator := regexp.MustCompile(`, |; | and `)
	description := regexp.MustCompile(`^[a-z]+ `)
	for _, match := range row.FindAllStringSubmatch(readFile(t, "docs/applications.md"), -1)[1:] { // below the heads
		for _, name := range separator.Split(qualifier.ReplaceAllString(match[1], ""), -1) {
			in := recorded.String()
			name, isRead := strings.CutSuffix(strings.Trim(name, "`"), `\*`)
			if isRead {
				in = read.String()
			}
			if !description.MatchString(name) && !strings.Contains(in, name) {
				t.Errorf("%q is not recorded, or its source is not given", name)
			}
		}
	}
}

// TestKeepsOfApplications has each keep of the document match a 404 of an application.
func TestKeepsOfApplications(t *testing.T) {
	t.Chdir("..")
	var headers []http.Header
	for _, rec := range slices.Concat(testcaddy.Recordings(), testcaddy.RouterRecordings()) {
		if !rec.IsOfStandIn {
			headers = append(headers, rec.Response)
		}
	}
	for _, source := range testcaddy.Sources() {
		field, value, _ := strings.Cut(source.Keep, ": ")
		headers = append(headers, http.Header{field: {value}})
	}
	keep := regexp.MustCompile("keep header (\\S+) ([^\\s`]+)")
	for _, match := range keep.FindAllStringSubmatch(readFile(t, "docs/applications.md"), -1) {
		matcher := caddyhttp.ResponseMatcher{Headers: http.Header{match[1]: {match[2]}}}
		keeps := func(header http.Header) bool { return matcher.Match(http.StatusNotFound, header) }
		if !slices.ContainsFunc(headers, keeps) {
			t.Errorf("%s matches no 404 of an application", match[0])
		}
	}
}

// TestDocumentsNameTestsThatExist finds each test that SECURITY.md or CONTRIBUTING.md names. A name that ends in …
// stands for all tests that begin with it.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Chdir("..")
	declared := testFunctions(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)(…?)`")
	for _, file := range glob(t, ".github/*.md") {
		names := named.FindAllStringSubmatch(readFile(t, file), -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", file)
		}
		for _, match := range names {
			name, isPrefix := match[1], match[2] != ""
			exists := slices.ContainsFunc(declared, func(function string) bool {
				return function == name || isPrefix && strings.HasPrefix(function, name)
			})
			if !exists {
				t.Errorf("%s names %s, which does not exist", file, match[0])
			}
		}
	}
}

// testFunctions returns the names of all tests and fuzz targets in the repository.
func testFunctions(t *testing.T) (names []string) {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			for _, match := range declaration.FindAllStringSubmatch(readFile(t, path), -1) {
				names = append(names, match[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestExamplesNameVersions looks for what an example would fetch in another version tomorrow: an image or a Go
// module. Until the first release, this module is the checkout.
func TestExamplesNameVersions(t *testing.T) {
	t.Chdir("..")
	fetched := regexp.MustCompile(`(?m)^ *(?:FROM|(?:- )?image:) +(\S+)|--with (\S+)`)
	versioned := regexp.MustCompile(`^[\w./-]+(:|@)v?\d[\w.-]*$`)
	found := 0
	for _, file := range exampleFiles(t) {
		content := readFile(t, file)
		for _, match := range fetched.FindAllStringSubmatch(content, -1) {
			found++
			name := match[1] + match[2]
			if name != "github.com/caddy-notfound/notfound=/src" && !versioned.MatchString(name) {
				t.Errorf("%s fetches %s without a version", file, name)
			}
		}
	}
	if found == 0 {
		t.Error("no example has an image or a module")
	}
}

// exampleFiles returns the paths of the examples' files.
func exampleFiles(t *testing.T) []string {
	t.Helper()
	return glob(t, "examples/*/*.*", "examples/*/*file")
}

// documents returns the paths of all documents.
func documents(t *testing.T) (files []string) {
	t.Helper()
	return glob(t, "*.md", ".github/*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "tools/*/*.md")
}

// glob returns the paths that match the patterns. Each pattern must match something.
func glob(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil || len(matches) == 0 {
			t.Fatalf("%s has the files %v, %v", pattern, matches, err)
		}
		for _, match := range matches {
			files = append(files, filepath.ToSlash(match))
		}
	}
	return files
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// anchor returns the name that GitHub gives to a heading.
func anchor(heading string) string {
	name := strings.ReplaceAll(strings.ToLower(heading), " ", "-")
	return notInAnchors.ReplaceAllString(name, "")
}

var notInAnchors = regexp.MustCompile(`[^\pL\p{Nd}_-]`)
