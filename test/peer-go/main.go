// A control plane in grpc-go with its default enforcement of keepalive: `peer-go CA CERTIFICATE KEY` listens on a free port of loopback
// and writes one line for each thing that happens: `port N`, `connected N`, `closed N`, `opened N`, `beat N`, `ended N: REASON`. N counts.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

const streamMethod = "/runos.nodeward.proto.l2sec.Nodeward/NodeAgentStream"

// Fields of FromNodeAgent and ToNodeAgent.
const (
	fieldJSON = protowire.Number(1)
	fieldType = protowire.Number(5)
	fieldTag  = protowire.Number(10)
)

// raw passes bytes through.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(value any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*value.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, value any) error {
	*value.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = raw{}

var connected, opened, beats atomic.Int64

// counted says when a connection comes and goes.
type counted struct{ net.Listener }

func (listener counted) Accept() (net.Conn, error) {
	conn, err := listener.Listener.Accept()
	if err != nil {
		return nil, err
	}
	number := connected.Add(1)
	fmt.Printf("connected %d\n", number)
	return &counter{Conn: conn, number: number}, nil
}

type counter struct {
	net.Conn
	number int64
	once   sync.Once
}

func (conn *counter) Close() error {
	conn.once.Do(func() { fmt.Printf("closed %d\n", conn.number) })
	return conn.Conn.Close()
}

func serve(_ any, stream grpc.ServerStream) error {
	if method, _ := grpc.MethodFromServerStream(stream); method != streamMethod {
		return status.Error(codes.Unimplemented, "unknown method "+method)
	}
	number := opened.Add(1)
	fmt.Printf("opened %d\n", number)
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			fmt.Printf("ended %d: %v\n", number, err)
			return nil
		}
		fields := textFields(message)
		if fields[fieldType] != "NodeAgentHeartbeatToServer" {
			continue
		}
		answer := reply(fields, `{"isHealthy":true,"message":""}`)
		if err := stream.SendMsg(&answer); err != nil {
			return err
		}
		fmt.Printf("beat %d\n", beats.Add(1))
	}
}

func textFields(message []byte) map[protowire.Number]string {
	fields := map[protowire.Number]string{}
	for len(message) > 0 {
		number, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return fields
		}
		message = message[length:]
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			fields[number] = string(value)
		}
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return fields
		}
		message = message[size:]
	}
	return fields
}

func reply(to map[protowire.Number]string, json string) []byte {
	var message []byte
	put := func(number protowire.Number, value string) {
		message = protowire.AppendString(protowire.AppendTag(message, number, protowire.BytesType), value)
	}
	put(fieldJSON, base64.StdEncoding.EncodeToString([]byte(json)))
	put(fieldType, to[fieldType])
	put(fieldTag, to[fieldTag])
	return message
}

func main() {
	ca, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	secure := credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
	})
	server := grpc.NewServer(grpc.Creds(secure), grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(serve))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(server.Serve(counted{listener}))
}
