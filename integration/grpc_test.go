//go:build !race

// Not with -race: when a gRPC server has answered and resets the stream, Caddy's reverse_proxy closes the request's
// body while it is read, also without not_found.

package integration

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestGRPCClientUnderstandsThePage sends a page to a gRPC client, which takes the status 404 for an unknown method, as
// without not_found. gRPC's own answers pass.
func TestGRPCClientUnderstandsThePage(t *testing.T) {
	app := testcaddy.H2CBackend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h := w.Header()
		switch r.URL.Path {
		case "/grpc/Empty": // an error without a message, in the header alone
			h.Set("Content-Type", "application/grpc")
			h.Set("Grpc-Status", "5")
			h.Set("Grpc-Message", "theirs")
			h.Set("Content-Length", "0")
			w.WriteHeader(http.StatusNotFound)
		case "/grpc/Body":
			h.Set("Content-Type", "application/grpc+proto")
			w.WriteHeader(http.StatusNotFound)
			_ = http.NewResponseController(w).Flush()
			h.Set(http.TrailerPrefix+"Grpc-Status", "5")
			h.Set(http.TrailerPrefix+"Grpc-Message", "theirs")
		default:
			testcaddy.MissingPage(w, r)
		}
	})
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found
	reverse_proxy h2c://`+app+`
}`, "servers {\nprotocols h1 h2c\n}")
	conn := grpcClient(t, s)
	for method, want := range map[string]struct {
		code    codes.Code
		message string
	}{
		"/any/Method": {codes.Unimplemented, "text/plain"}, // without not_found, the same with text/html
		"/grpc/Empty": {codes.NotFound, "theirs"},
		"/grpc/Body":  {codes.NotFound, "theirs"},
	} {
		err := conn.Invoke(t.Context(), method, &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
		got := status.Convert(err)
		if got.Code() != want.code || !strings.Contains(got.Message(), want.message) {
			t.Errorf("%s: got %v, want %s and %q", method, got, want.code, want.message)
		}
	}
}

// grpcClient returns a client of the site a.test.
func grpcClient(t *testing.T, s *testcaddy.Server) *grpc.ClientConn {
	t.Helper()
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	}
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient("passthrough:///a.test", plain, grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
