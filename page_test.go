package notfound

import (
	"net/http"
	"testing"
)

// TestMethodThatIsNoToken covers HTTP/2, which allows bytes in a method that HTTP/1.1 does not.
func TestMethodThatIsNoToken(t *testing.T) {
	o := &pageOptions{footer: expandable{value: "x"}}
	r, err := http.NewRequest("GET", "http://a.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Method, r.RequestURI = "A <b>\"\xff\u2028", "/"
	p := o.newPage(&clientRequest{Request: r, host: "a.test"})
	if got, want := string(p.message), "No endpoint A%20%3Cb%3E%22%FF%E2%80%A8 /missing.html."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
