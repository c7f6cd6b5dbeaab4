//go:build !race

// Not with the race detector, which finds a race in Caddy's reverse_proxy, with not_found and without it: a gRPC server
// that has answered resets the stream, and the request's body is closed while it is still read.

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

// TestGRPC has a real client call a real server: unary, streaming, and errors that are in
// a header alone.
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
	conn := grpcClient(t, s, "a.test")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	client := healthpb.NewHealthClient(conn)

	t.Run("unary", func(t *testing.T) {
		var trailer metadata.MD
		services.SetServingStatus("a", healthpb.HealthCheckResponse_SERVING)
		res, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "a"}, grpc.Trailer(&trailer))
		if err != nil || res.Status != healthpb.HealthCheckResponse_SERVING || fmt.Sprint(trailer["x-sum"]) != "[1]" {
			t.Errorf("got %v, %v, the trailer %v", res, err, trailer)
		}
	})
	t.Run("error", func(t *testing.T) {
		if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "b"}); status.Code(err) != codes.NotFound {
			t.Errorf("got %v", err)
		}
	})
	t.Run("unknown method", func(t *testing.T) {
		if err := conn.Invoke(ctx, "/no.Service/Method", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bidirectional streaming", func(t *testing.T) {
		stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
				t.Fatal(err)
			}
			if res, err := stream.Recv(); err != nil || len(res.GetListServicesResponse().GetService()) == 0 {
				t.Fatalf("got %v, %v", res, err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); err != io.EOF {
			t.Errorf("got %v at the end", err)
		}
	})
}

// grpcClient returns a client of a site.
func grpcClient(t *testing.T, s *testcaddy.Server, host string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestGRPCClientUnderstandsThePage has a page reach a gRPC client, which takes the status 404 for an unknown method, as it
// does without not_found. Answers of gRPC's own pass.
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
	s := testcaddy.Start(t, strings.ReplaceAll(`
http://pages.test:0 {
	not_found
	request_header -Content-Type
	handle /web.Unanswered/* {
	}
	handle {
		reverse_proxy h2c://APP
	}
}
http://bare.test:0 {
	reverse_proxy h2c://APP
}`, "APP", app), "servers {\nprotocols h1 h2c\n}")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	call := func(t *testing.T, host, method string) *status.Status {
		err := grpcClient(t, s, host).Invoke(ctx, method, &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
		return status.Convert(err)
	}
	long := strings.Repeat("x", 10_000) // for a page of more than the 4096 bytes that net/http buffers for a stream
	for name, method := range map[string]string{
		"page":                       "/web.Service/Method",
		"long page":                  "/web.Service/" + long,
		"page for one without end":   "/web.Trickles/Method",
		"page where nothing answers": "/web.Unanswered/Method",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// without not_found it is the same code, and the backend's media type
			if got := call(t, "pages.test", method); got.Code() != codes.Unimplemented || !strings.Contains(got.Message(), "404") || !strings.Contains(got.Message(), "text/plain") {
				t.Errorf("got %v", got)
			}
		})
	}
	for _, method := range []string{"/grpc.Empty/Method", "/grpc.Body/Method"} {
		for _, host := range []string{"bare.test", "pages.test"} {
			t.Run(method+" of "+host, func(t *testing.T) {
				t.Parallel()
				if got := call(t, host, method); got.Code() != codes.NotFound || got.Message() != "theirs" {
					t.Errorf("got %v, want the backend's own answer", got)
				}
			})
		}
	}
}
