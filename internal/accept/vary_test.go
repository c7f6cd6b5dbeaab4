package accept

import (
	"net/http"
	"slices"
	"testing"
)

func TestAddToVary(t *testing.T) {
	for name, tt := range map[string]struct{ has, want []string }{
		"nothing yet":      {nil, []string{"Accept"}},
		"another field":    {[]string{"Accept-Encoding"}, []string{"Accept-Encoding", "Accept"}},
		"a similar name":   {[]string{"X-Accept"}, []string{"X-Accept", "Accept"}},
		"the field":        {[]string{"Accept"}, []string{"Accept"}},
		"the field, later": {[]string{"Origin", "Cookie, accept"}, []string{"Origin", "Cookie, accept"}},
		"everything":       {[]string{"*"}, []string{"*"}},
	} {
		header := http.Header{"Vary": slices.Clone(tt.has)}
		AddToVary(header, "Accept")
		if got := header["Vary"]; !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
