package userfile

import (
	"cmp"
	"errors"
	"io/fs"
	"testing"
)

// TestClientNamesNoDevice has values that could be a device, or another stream of a file. Each is a name elsewhere.
func TestClientNamesNoDevice(t *testing.T) {
	for _, value := range []string{"NUL", "con", "COM1", "a:b"} {
		got, err := expand("C:/sites/{"+host+"}", placeholders(values{host: value}))
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %q, %v", value, got, err)
		}
	}
}

// TestClientNamesNoServer has paths that may begin with a server and its share, or with the prefix of a device.
func TestClientNamesNoServer(t *testing.T) {
	const ofSite = "{" + variable + "}/{" + host + "}/404.html"
	for _, tt := range []struct {
		path     string // empty: ofSite
		variable string
		sent     string
		want     string // empty: the file counts as missing
	}{
		{variable: `C:\sites`, sent: "a.test", want: `C:\sites/a.test/404.html`},
		{variable: `\\nas\sites`, sent: "a.test", want: `\\nas\sites/a.test/404.html`},
		{variable: `\\?\C:\sites`, sent: "a.test", want: `\\?\C:\sites/a.test/404.html`},
		{path: "//{map}/sites/{" + host + "}", sent: "a.test", want: "//nas/sites/a.test"},

		{variable: "/", sent: "a.test"},
		{variable: "/", sent: "x"},
		{variable: `\`, sent: "a.test"},
		{variable: `\\nas`, sent: "share"},
		{path: "/{" + host + "}/C:/404.html", sent: "??"},
	} {
		path := cmp.Or(tt.path, ofSite)
		got, err := expand(path, placeholders(values{variable: tt.variable, host: tt.sent, "map": "nas"}))
		isMissing := err == fs.ErrNotExist
		if isMissing != (tt.want == "") || !isMissing && got != tt.want {
			t.Errorf("%+v: got %q, %v", tt, got, err)
		}
	}
}
