package accept

import (
	"net/http"
	"slices"
	"testing"
)

func TestAddToVary(t *testing.T) {
	for name, tt := range map[string]struct{ has, want []string }{
		"nothing yet":      {nil, []string{"Accept"}},
		"another field":    {[]string{"Accept-Encoding"}, []string{"Accept-Encoding, Accept"}},
		"a similar name":   {[]string{"X-Accept"}, []string{"X-Accept, Accept"}},
		"the field":        {[]string{"Accept"}, []string{"Accept"}},
		"the field, later": {[]string{"Origin", "Cookie, accept"}, []string{"Origin", "Cookie, accept"}},
		"several lines":    {[]string{"Origin", "Cookie"}, []string{"Origin, Cookie, Accept"}},
		"everything":       {[]string{"*"}, []string{"*"}},
	} {
		header := http.Header{"Vary": slices.Clone(tt.has)}
		AddToVary(header, "Accept")
		if got := header["Vary"]; !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}

	header := http.Header{"Vary": {"Sec-Fetch-Mode"}}
	AddToVary(header, "Accept", "Sec-Fetch-Mode")
	if got := header["Vary"]; !slices.Equal(got, []string{"Sec-Fetch-Mode, Accept"}) {
		t.Errorf("of two fields, got %q", got)
	}
}
