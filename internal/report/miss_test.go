package report

import "testing"

// TestWhatNobodyFollowedHasNoLink has requests with a Referer of the same host, unless the case says another one.
func TestWhatNobodyFollowedHasNoLink(t *testing.T) {
	for name, tt := range map[string]struct {
		request Request
		link    Link
		referer string // that is kept
	}{
		"a link":                      {Request{}, Own, "https://a.test/blog"},
		"a form":                      {Request{Method: "POST"}, Own, "https://a.test/blog"},
		"HEAD":                        {Request{Method: "HEAD"}, Own, "https://a.test/blog"},
		"a folder of WebDAV":          {Request{Method: "PROPFIND"}, None, "https://a.test/blog"},
		"a program":                   {Request{ByProgram: true}, None, "https://a.test/blog"},
		"an icon that nobody names":   {Request{Address: "https://a.test/favicon.ico"}, None, "https://a.test/blog"},
		"an icon with a query":        {Request{Address: "https://a.test/favicon.ico?v=2"}, Own, "https://a.test/blog"},
		"an icon of a folder":         {Request{Address: "https://a.test/blog/favicon.ico"}, Own, "https://a.test/blog"},
		"a page of another host":      {Request{Referer: "https://b.test/"}, Other, "https://b.test/"},
		"the address itself":          {Request{Referer: "http://a.test/x?y"}, None, ""},
		"the host that was addressed": {Request{Address: "https://shop.test/x"}, Own, "https://a.test/blog"},
		"an address without a host":   {Request{Address: "urn:x"}, Own, "https://a.test/blog"},
		"a Referer with a backslash":  {Request{Referer: `http://evil.example\@a.test/`}, None, ""},
	} {
		r := tt.request
		r.Authority = "a.test"
		if r.Address == "" {
			r.Address = "https://a.test/x?y"
		}
		if r.Method == "" {
			r.Method = "GET"
		}
		if r.Referer == "" {
			r.Referer = "https://a.test/blog"
		}
		if got := r.Miss(Error); got.Link != tt.link || got.Referer != tt.referer || got.Outcome != Error {
			t.Errorf("%s: got %s and %q, want %s and %q", name, got.Link, got.Referer, tt.link, tt.referer)
		}
	}
	m := (&Request{Address: "https://b.test/x?y", Authority: "a.test", Method: "GET"}).Miss(Passed)
	if m.Host != "b.test" || m.Path != "/x?y" || m.Link != None {
		t.Errorf("got %+v", m)
	}
	m = (&Request{Address: "urn:x", Method: "GET"}).Miss(Passed)
	if m.Host != "" || m.Path != "urn:x" {
		t.Errorf("of an address without a host, got %+v", m)
	}
}
