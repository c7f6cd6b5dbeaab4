package accept

import (
	"net/http"
	"slices"
	"testing"
)

func TestAddToVary(t *testing.T) {
	for _, tt := range []struct{ has, want []string }{
		{
			want: []string{"Accept, Sec-Fetch-Mode"},
		},
		{
			has:  []string{"Origin", "X-Accept, sec-fetch-mode"},
			want: []string{"Origin, X-Accept, sec-fetch-mode, Accept"},
		},
		{
			has:  []string{"Sec-Fetch-Mode", "Cookie, accept"},
			want: []string{"Sec-Fetch-Mode, Cookie, accept"},
		},
		{
			has:  []string{"accept, Sec-Fetch-Mode"},
			want: []string{"accept, Sec-Fetch-Mode"},
		},
		{
			has:  []string{"Cookie", "*"},
			want: []string{"Cookie, *"},
		},
		{
			has:  []string{"*"},
			want: []string{"*"},
		},
	} {
		header := http.Header{"Vary": tt.has}
		AddToVary(header, "Accept, Sec-Fetch-Mode")
		if got := header["Vary"]; !slices.Equal(got, tt.want) {
			t.Errorf("%q becomes %q, want %q", tt.has, got, tt.want)
		}
	}
}
