// A service of gRPC and its client, by Google's implementation for Go; messages are bytes as they are.
//
//	grpc server ADDRESS [FILE with a certificate and its key]
//	grpc client ADDRESS [FILE with a certificate to trust]
//
// The client prints a line for each thing that it has tried. peer.py is the same in Python.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type plain struct{}

func (plain) Marshal(value any) ([]byte, error) { return *value.(*[]byte), nil }

func (plain) Unmarshal(data []byte, value any) error {
	*value.(*[]byte) = bytes.Clone(data)
	return nil
}

func (plain) Name() string { return "plain" }

// How many calls that wait were cancelled.
var cancelled atomic.Int64

func unary(answer func(context.Context, []byte) ([]byte, error)) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var asked []byte
		if err := decode(&asked); err != nil {
			return nil, err
		}
		told, err := answer(ctx, asked)
		if err != nil {
			return nil, err
		}
		return &told, nil
	}
}

func echo(ctx context.Context, asked []byte) ([]byte, error) {
	grpc.SetHeader(ctx, metadata.Pairs("x-head", "ahead"))
	grpc.SetTrailer(ctx, metadata.Pairs("x-sum", strconv.Itoa(len(asked))))
	return asked, nil
}

func collect(_ any, stream grpc.ServerStream) error {
	count, total := 0, 0
	for {
		var piece []byte
		err := stream.RecvMsg(&piece)
		if err == io.EOF {
			told := []byte(fmt.Sprintf("%d %d", count, total))
			return stream.SendMsg(&told)
		}
		if err != nil {
			return err
		}
		count, total = count+1, total+len(piece)
	}
}

func split(_ any, stream grpc.ServerStream) error {
	var asked []byte
	if err := stream.RecvMsg(&asked); err != nil {
		return err
	}
	count, _ := strconv.Atoi(string(asked))
	piece := bytes.Repeat([]byte("x"), 10000)
	for range count {
		if err := stream.SendMsg(&piece); err != nil {
			return err
		}
	}
	return nil
}

func talk(_ any, stream grpc.ServerStream) error {
	for {
		var piece []byte
		if err := stream.RecvMsg(&piece); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(&piece); err != nil {
			return err
		}
	}
}

func late(_ any, stream grpc.ServerStream) error {
	var asked []byte
	if err := stream.RecvMsg(&asked); err != nil {
		return err
	}
	if err := stream.SendMsg(&asked); err != nil {
		return err
	}
	return status.Error(codes.Aborted, "too late: 100 % über")
}

func wait(_ any, stream grpc.ServerStream) error {
	var asked []byte
	if err := stream.RecvMsg(&asked); err != nil {
		return err
	}
	if err := stream.SendMsg(&asked); err != nil {
		return err
	}
	<-stream.Context().Done()
	cancelled.Add(1)
	return stream.Context().Err()
}

func serve(address, pem string) {
	options := []grpc.ServerOption{grpc.ForceServerCodec(plain{})}
	if pem != "" {
		own, err := credentials.NewServerTLSFromFile(pem, pem)
		check(err)
		options = append(options, grpc.Creds(own))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "terse.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Echo", Handler: unary(echo)},
			{MethodName: "Fail", Handler: unary(func(context.Context, []byte) ([]byte, error) {
				return nil, status.Error(codes.NotFound, "no such thing")
			})},
			{MethodName: "HasDeadline", Handler: unary(func(ctx context.Context, _ []byte) ([]byte, error) {
				until, has := ctx.Deadline()
				return []byte(strconv.FormatBool(has && time.Until(until) < time.Hour)), nil
			})},
			{MethodName: "Cancelled", Handler: unary(func(context.Context, []byte) ([]byte, error) {
				return []byte(strconv.FormatInt(cancelled.Load(), 10)), nil
			})},
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "Collect", Handler: collect, ClientStreams: true},
			{StreamName: "Split", Handler: split, ServerStreams: true},
			{StreamName: "Talk", Handler: talk, ServerStreams: true, ClientStreams: true},
			{StreamName: "Late", Handler: late, ServerStreams: true},
			{StreamName: "Wait", Handler: wait, ServerStreams: true},
		},
	}, struct{}{})
	listener, err := net.Listen("tcp", address)
	check(err)
	check(server.Serve(listener))
}

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

type client struct{ *grpc.ClientConn }

func (client client) unary(ctx context.Context, method string, message []byte, options ...grpc.CallOption) ([]byte, error) {
	var told []byte
	err := client.Invoke(ctx, "/terse.Echo/"+method, &message, &told, options...)
	return told, err
}

func (client client) stream(ctx context.Context, method string) grpc.ClientStream {
	both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := client.NewStream(ctx, both, "/terse.Echo/"+method)
	check(err)
	return stream
}

func send(stream grpc.ClientStream, message []byte) { check(stream.SendMsg(&message)) }

func receive(stream grpc.ClientStream) ([]byte, error) {
	var told []byte
	err := stream.RecvMsg(&told)
	return told, err
}

func (client client) cancelled() int {
	told, err := client.unary(context.Background(), "Cancelled", nil)
	check(err)
	count, err := strconv.Atoi(string(told))
	check(err)
	return count
}

// Waits until the server says that another call was cancelled.
func (client client) another(before int) bool {
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if client.cancelled() > before {
			return true
		}
		// A server in Python that is asked all the time comes to nothing else.
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func ask(address, root string) {
	trust := insecure.NewCredentials()
	if root != "" {
		pem, err := os.ReadFile(root)
		check(err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		trust = credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "localhost"})
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(trust), grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
	check(err)
	client, none := client{connection}, context.Background()

	var head, tail metadata.MD
	told, err := client.unary(none, "Echo", []byte("hello"), grpc.Header(&head), grpc.Trailer(&tail))
	fmt.Println("unary", string(told), head["x-head"], tail["x-sum"], status.Code(err))

	large := bytes.Repeat([]byte("0123456789"), 300000)
	told, err = client.unary(none, "Echo", large)
	fmt.Println("large", bytes.Equal(told, large), status.Code(err))
	told, err = client.unary(none, "Echo", nil)
	fmt.Println("empty", len(told), status.Code(err))

	stream := client.stream(none, "Collect")
	for range 1000 {
		send(stream, make([]byte, 1000))
	}
	check(stream.CloseSend())
	told, err = receive(stream)
	fmt.Println("client streaming", string(told), status.Code(err))

	stream = client.stream(none, "Split")
	send(stream, []byte("300"))
	check(stream.CloseSend())
	count, total := 0, 0
	for {
		if told, err = receive(stream); err != nil {
			break
		}
		count, total = count+1, total+len(told)
	}
	fmt.Println("server streaming", count, total, err == io.EOF)

	// Each message waits for the one before to come back.
	stream, count = client.stream(none, "Talk"), 0
	for number := range 200 {
		message := []byte(strconv.Itoa(number))
		send(stream, message)
		if told, err = receive(stream); err == nil && bytes.Equal(told, message) {
			count++
		}
	}
	check(stream.CloseSend())
	_, err = receive(stream)
	fmt.Println("both ways", count, err == io.EOF)

	_, err = client.unary(none, "Fail", nil)
	fmt.Println("error", status.Code(err), status.Convert(err).Message())
	_, err = client.unary(none, "Nothing", nil)
	fmt.Println("no method", status.Code(err))
	stream = client.stream(none, "Late")
	send(stream, []byte("first"))
	check(stream.CloseSend())
	told, err = receive(stream)
	check(err)
	_, err = receive(stream)
	fmt.Println("late error", string(told), status.Code(err), status.Convert(err).Message())

	soon, end := context.WithTimeout(none, time.Minute)
	told, err = client.unary(soon, "HasDeadline", nil)
	end()
	fmt.Println("deadline told", string(told), status.Code(err))
	before := client.cancelled()
	soon, end = context.WithTimeout(none, 300*time.Millisecond)
	stream = client.stream(soon, "Wait")
	send(stream, []byte("wait"))
	check(stream.CloseSend())
	_, err = receive(stream)
	check(err)
	_, err = receive(stream)
	end()
	fmt.Println("deadline", status.Code(err), client.another(before))
	before = client.cancelled()
	soon, end = context.WithCancel(none)
	stream = client.stream(soon, "Wait")
	send(stream, []byte("wait"))
	check(stream.CloseSend())
	_, err = receive(stream)
	check(err)
	end()
	_, err = receive(stream)
	fmt.Println("cancellation", status.Code(err), client.another(before))

	var all sync.WaitGroup
	var good atomic.Int64
	for number := range 500 {
		all.Add(1)
		go func() {
			defer all.Done()
			message := []byte(strconv.Itoa(number))
			if told, err := client.unary(none, "Echo", message); err == nil && bytes.Equal(told, message) {
				good.Add(1)
			}
		}()
	}
	all.Wait()
	fmt.Println("together", good.Load())
}

func main() {
	words := append(os.Args[1:], "", "", "")
	if words[0] == "server" {
		serve(words[1], words[2])
	} else {
		ask(words[1], words[2])
	}
}
