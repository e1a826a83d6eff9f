// go-proxy PROTOCOL:LISTEN=ENDPOINT...: what a plain Go proxy does: io.Copy both ways (splice(2) inside), a goroutine per UDP flow.
package main

import (
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

const flowTimeout = 30 * time.Second

func main() {
	for _, argument := range os.Args[1:] {
		protocol, rest, _ := strings.Cut(argument, ":")
		listen, endpoint, _ := strings.Cut(rest, "=")
		if protocol == "tcp" {
			go serveTCP(listen, endpoint)
		} else {
			go serveUDP(listen, endpoint)
		}
	}
	select {}
}

func serveTCP(listen, endpoint string) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		panic(err)
	}
	for {
		client, err := listener.Accept()
		if err == nil {
			go carry(client.(*net.TCPConn), endpoint)
		}
	}
}

func carry(client *net.TCPConn, endpoint string) {
	defer client.Close()
	dialed, err := net.Dial("tcp", endpoint)
	if err != nil {
		return
	}
	upstream := dialed.(*net.TCPConn)
	defer upstream.Close()
	var directions sync.WaitGroup
	for _, pair := range [][2]*net.TCPConn{{upstream, client}, {client, upstream}} {
		directions.Go(func() {
			io.Copy(pair[0], pair[1])
			pair[0].CloseWrite()
		})
	}
	directions.Wait()
}

type flows struct {
	mutex    sync.Mutex
	byClient map[netip.AddrPort]*net.UDPConn
}

func serveUDP(listen, endpoint string) {
	address, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		panic(err)
	}
	target, err := net.ResolveUDPAddr("udp", endpoint)
	if err != nil {
		panic(err)
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		panic(err)
	}
	socket.SetReadBuffer(4 << 20)
	all := flows{byClient: map[netip.AddrPort]*net.UDPConn{}}
	buffer := make([]byte, 64*1024)
	for {
		size, client, err := socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			continue
		}
		if flow := all.of(client, target, socket); flow != nil {
			flow.Write(buffer[:size])
		}
	}
}

func (all *flows) of(client netip.AddrPort, target *net.UDPAddr, socket *net.UDPConn) *net.UDPConn {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	if flow := all.byClient[client]; flow != nil {
		return flow
	}
	flow, err := net.DialUDP("udp", nil, target)
	if err != nil {
		return nil
	}
	all.byClient[client] = flow
	go all.answer(client, flow, socket)
	return flow
}

func (all *flows) answer(client netip.AddrPort, flow, socket *net.UDPConn) {
	buffer := make([]byte, 64*1024)
	for {
		flow.SetReadDeadline(time.Now().Add(flowTimeout))
		size, err := flow.Read(buffer)
		if err != nil {
			break
		}
		socket.WriteToUDPAddrPort(buffer[:size], client)
	}
	all.mutex.Lock()
	delete(all.byClient, client)
	all.mutex.Unlock()
	flow.Close()
}
