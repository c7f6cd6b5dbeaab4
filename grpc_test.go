//go:build !race

// Not with the race detector, which finds one in Caddy's reverse_proxy, with this handler and without it: a gRPC server
// that is done resets the stream, and the request's body is closed while it is still read.

package notfound

import (
	"context"
	"fmt"
	"io"
	"net"
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
)

// TestGRPC has a real client call a real server: unary, server streaming, bidirectional streaming, and errors
// that a response without a body carries.
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

	s := startCaddy(t, "http://a.test:0 {\nnot_found {\nreplace all\n}\nreverse_proxy h2c://"+ln.Addr().String()+"\n}", "servers {\nprotocols h1 h2c\n}")
	conn, err := grpc.NewClient("passthrough:///a.test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
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
	t.Run("server streaming", func(t *testing.T) {
		stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: "a"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			want := healthpb.HealthCheckResponse_ServingStatus(1 + i%2)
			if res, err := stream.Recv(); err != nil || res.Status != want {
				t.Fatalf("message %d: got %v, %v, want %v", i, res, err, want)
			}
			services.SetServingStatus("a", 3-want) // the next message, once this one is there
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
