package userfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// expandGlobal expands the placeholders of the environment and of the system in a path. It reports whether others are
// left, which only a request can expand.
func expandGlobal(path string) (expanded string, isOfSite bool, err error) {
	global := caddy.NewReplacer()
	expanded, err = caddy.NewEmptyReplacer().ReplaceFunc(path, func(name string, _ any) (any, error) {
		if !isGlobal(name) {
			isOfSite = true
			return "", nil
		}
		value, _ := global.GetString(name)
		if value == "" {
			return nil, fmt.Errorf("%q has the placeholder {%s}, which is not set or empty; set it before Caddy starts",
				path, name)
		}
		return value, nil
	})
	return expanded, isOfSite, err
}

// isGlobal reports whether a placeholder has its value when the config loads.
func isGlobal(placeholder string) bool {
	return strings.HasPrefix(placeholder, "env.") || strings.HasPrefix(placeholder, "system.")
}

// CheckPath refuses a path that could lead a request to a wrong file, and common mistakes.
func CheckPath(path string) error {
	_, isOfSite, _ := expandGlobal(path) // New reports what is not set
	switch {
	case path == "":
		return errors.New("a path is empty; write one as in 404.html")
	case strings.Contains(path, `\{`):
		return fmt.Errorf("%q has a backslash before a placeholder, which makes its brace a plain character; write %s",
			path, strings.ReplaceAll(path, `\`, "/"))
	case placeholderOfMatcher.MatchString(path):
		return fmt.Errorf("%q may become a file of the next handlers, such as a script; "+
			"write the files in a row, as in {http.vars.root}/a/404.html {http.vars.root}/404.html: "+
			"the first that can be sent is the page", path)
	case beginsWithRequest(path):
		return fmt.Errorf("%q begins with what a client or an upstream sends; "+
			"begin with a folder, or with {http.vars.root}, as in {http.vars.root}/404.html", path)
	case rootWithoutSlash.MatchString(path):
		return fmt.Errorf("%q has no slash after the root; write %s", path, rootWithoutSlash.ReplaceAllString(path, "$1/$2"))
	case isOfSite && leaves(path):
		return fmt.Errorf("%q has the element .., which leaves a folder; "+
			"write the folder itself, as in /srv/{http.request.host}/errors/404.html", path)
	case strings.Contains(path, "://"):
		return fmt.Errorf("%q is a URL, and a page is a file; docs/order.md has a page of another service", path)
	case severalPaths.MatchString(path):
		return fmt.Errorf("%q is one path, because of the quotes; write each path without them, or in its own", path)
	case placeholderOfPath.MatchString(path):
		return fmt.Errorf("%q has the placeholder %s, whose value has a slash in every request, "+
			"and so is never one element of a path; write {http.request.uri.path.0}, or what a path_regexp finds",
			path, placeholderOfPath.FindString(path))
	case placeholderOfFileOrTime.MatchString(path):
		return fmt.Errorf("%q has a placeholder of the file or the time, which no path can have; "+
			"write the path itself, or {env.NAME}", path)
	}
	return nil
}

// HasSidecars reports whether a path is that of a site's own file. It refuses a path that ends in a placeholder of a
// request: with the suffix of a sidecar, such a path could be the page for another value.
func HasSidecars(path string) (bool, error) {
	name := path[strings.LastIndex(path, "{")+1:]
	if strings.HasSuffix(name, "}") && !isGlobal(name) {
		return false, fmt.Errorf("%q ends in a placeholder of a request, and with .br behind it may be another's page; "+
			"end it in a name, as in {http.vars.root}/404.html", path)
	}
	_, isOfSite, err := expandGlobal(path)
	return isOfSite, err
}

// isOperators reports whether the operator chooses a placeholder's value, which may then have folders. These are
// {http.vars.*} and names that do not begin with http., such as those of map.
func isOperators(placeholder string) bool {
	return !strings.HasPrefix(placeholder, "http.") || strings.HasPrefix(placeholder, "http.vars.")
}

// beginsWithRequest reports whether a path begins with a placeholder that is not the operator's.
func beginsWithRequest(path string) bool {
	placeholder, hasBrace := strings.CutPrefix(path, "{")
	return hasBrace && !isOperators(placeholder)
}

var (
	// placeholderOfMatcher matches one of the file matcher, which the next handlers set anew before a path is expanded.
	placeholderOfMatcher = regexp.MustCompile(`\{http\.matchers\.file\.`)

	// placeholderOfFileOrTime matches {file.*}, for which Caddy reads a file, and {time.*}, which changes.
	placeholderOfFileOrTime = regexp.MustCompile(`\{(file|time)\.`)

	// placeholderOfPath matches one whose value has a slash in every request.
	placeholderOfPath = regexp.MustCompile(`\{http\.request\.(proto|(orig_)?uri(\.path(\.dir)?)?)\}`)

	// rootWithoutSlash matches the root and a name that would belong to the root's own name.
	rootWithoutSlash = regexp.MustCompile(`(\{http\.vars\.root\})([^/\\])`)

	// severalPaths matches several paths in one pair of quotes.
	severalPaths = regexp.MustCompile(`\.\w+\s+[/{]`)
)

const isWindows = runtime.GOOS == "windows"

// expand returns the path of a site's own file for a request. The error is [fs.ErrNotExist] if the request names no
// site, which is no mistake.
func expand(ofSite string, placeholders *caddy.Replacer) (path string, err error) {
	path, err = placeholders.ReplaceFunc(ofSite, func(name string, value any) (any, error) {
		text := caddy.ToString(value)
		switch {
		case value != nil && !isOperators(name) && !isElement(text):
			return nil, fmt.Errorf("{%s} is %.200q, which is not one element of a path: %w", name, text, fs.ErrNotExist)
		case text == "" && strings.HasSuffix(name, "root"):
			return nil, fmt.Errorf("the placeholder {%s} is unknown or empty; {http.vars.root} is what the directive root "+
				"of a site sets, and not a root inside file_server", name)
		case text == "":
			return nil, fmt.Errorf("the placeholder {%s} is unknown or empty", name)
		}
		return text, nil
	})
	switch {
	case err != nil:
		return ofSite, err
	case leaves(path): // because of a variable: what a client sends is one element
		return path, errors.New("it has the element .., which leaves a folder; write the folder itself")
	case isWindows && filepath.VolumeName(path) != volumeForAnother(ofSite, placeholders):
		return path, fs.ErrNotExist
	}
	return path, nil
}

// volumeForAnother returns the volume of the path, on Windows, for a client that sends other values. If the volumes
// differ, clients choose them: with the root /, {http.vars.root}/{http.request.host}/404.html begins with a server.
func volumeForAnother(ofSite string, placeholders *caddy.Replacer) string {
	path, _ := placeholders.ReplaceFunc(ofSite, func(name string, value any) (any, error) {
		text := caddy.ToString(value)
		if !isOperators(name) {
			text += "x"
		}
		return text, nil
	})
	return filepath.VolumeName(path)
}

// isElement reports whether a value is one element of a path. IsLocal refuses colons, and Windows' devices such as NUL.
func isElement(value string) bool {
	return filepath.IsLocal(value) && !strings.ContainsAny(value, `/\`) && strings.Trim(value, ". ") != ""
}

// leaves reports whether a path could lead out of its folder. Windows drops dots and blanks behind "..".
func leaves(path string) bool {
	isSlash := func(r rune) bool { return r == '/' || r == '\\' }
	for element := range strings.FieldsFuncSeq(path, isSlash) {
		if strings.HasPrefix(element, "..") && strings.Trim(element, ". ") == "" {
			return true
		}
	}
	return false
}
