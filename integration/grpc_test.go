//go:build !race

// Not with -race: when a gRPC server has answered and resets the stream, Caddy's reverse_proxy closes the request's body while
// it is read, also without not_found.

package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestGRPC has a real client call a real server: unary calls, a stream, and errors in a header alone.
func TestGRPC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	services := health.NewServer()
	srv := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("x-sum", "1")); err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}))
	healthpb.RegisterHealthServer(srv, services)
	reflection.Register(srv)
	go srv.Serve(ln)
	t.Cleanup(srv.Stop)

	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\nreplace all\n}\nreverse_proxy h2c://"+ln.Addr().String()+"\n}", "servers {\nprotocols h1 h2c\n}")
	conn := grpcClient(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	client := healthpb.NewHealthClient(conn)

	services.SetServingStatus("a", healthpb.HealthCheckResponse_SERVING)
	var trailer metadata.MD
	res, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "a"}, grpc.Trailer(&trailer))
	if err != nil || res.Status != healthpb.HealthCheckResponse_SERVING || fmt.Sprint(trailer["x-sum"]) != "[1]" {
		t.Errorf("got %v, %v, the trailer %v", res, err, trailer)
	}
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "b"}); status.Code(err) != codes.NotFound {
		t.Errorf("got %v, want the error of an unknown service", err)
	}
	if err := conn.Invoke(ctx, "/no.Service/Method", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v, want the error of an unknown method", err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
		if res, recvErr := stream.Recv(); err != nil || recvErr != nil || len(res.GetListServicesResponse().GetService()) == 0 {
			t.Fatalf("streaming, got %v, %v, %v", res, err, recvErr)
		}
	}
}

// grpcClient returns a client of the site a.test.
func grpcClient(t *testing.T, s *testcaddy.Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///a.test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestGRPCClientUnderstandsThePage sends a page to a gRPC client, which takes the status 404 for an unknown method, as without
// not_found. gRPC's own answers pass.
func TestGRPCClientUnderstandsThePage(t *testing.T) {
	app := testcaddy.H2CBackend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h := w.Header()
		switch {
		case strings.HasPrefix(r.URL.Path, "/grpc.Empty"): // an error without a message, in the header alone
			h.Set("Content-Type", "application/grpc")
			h.Set("Grpc-Status", "5")
			h.Set("Grpc-Message", "theirs")
			h.Set("Content-Length", "0")
			w.WriteHeader(http.StatusNotFound)
		case strings.HasPrefix(r.URL.Path, "/grpc.Body"):
			h.Set("Content-Type", "application/grpc+proto")
			w.WriteHeader(http.StatusNotFound)
			_ = http.NewResponseController(w).Flush()
			h.Set(http.TrailerPrefix+"Grpc-Status", "5")
			h.Set(http.TrailerPrefix+"Grpc-Message", "theirs")
		case strings.HasPrefix(r.URL.Path, "/web.Trickles"):
			h.Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			for r.Context().Err() == nil {
				_ = http.NewResponseController(w).Flush()
				time.Sleep(50 * time.Millisecond)
				io.WriteString(w, "x")
			}
		default:
			h.Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "<h1>Not Found</h1>")
		}
	})
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found
	request_header -Content-Type
	handle /web.Unanswered/* {
	}
	handle {
		reverse_proxy h2c://`+app+`
	}
}`, "servers {\nprotocols h1 h2c\n}")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	conn := grpcClient(t, s)
	for method, want := range map[string]struct {
		code    codes.Code
		message string
	}{
		"/web.Service/Method":    {codes.Unimplemented, "text/plain"}, // without not_found, the same with text/html
		"/web.Trickles/Method":   {codes.Unimplemented, "text/plain"},
		"/web.Unanswered/Method": {codes.Unimplemented, "text/plain"},
		"/grpc.Empty/Method":     {codes.NotFound, "theirs"},
		"/grpc.Body/Method":      {codes.NotFound, "theirs"},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			err := conn.Invoke(ctx, method, &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
			if got := status.Convert(err); got.Code() != want.code || !strings.Contains(got.Message(), want.message) {
				t.Errorf("got %v, want %s and %q", got, want.code, want.message)
			}
		})
	}
}
