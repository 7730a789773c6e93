// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"
	gobgpserver "github.com/osrg/gobgp/v4/pkg/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// GoBGP's own API is there for those who check by the gobgp command, as the documents of the old system tell them to.
// It shows and changes nothing: what is announced comes from the record. Whoever reaches it may ask, so that what one
// asks costs little, and passwords are left out.
const (
	maxQuestion     = 64 << 10 // bytes of a request
	maxQuestions    = 8        // at once, of all clients; GoBGP copies a table for each
	maxConversation = 5 * time.Minute
	maxIdle         = time.Minute
)

// unixScheme begins the address of a Unix socket.
const unixScheme = "unix://"

// management is what the server needs to answer at the address asked for, if it can listen there.
func management(c Config) []gobgpserver.ServerOption {
	if c.Management == "" {
		return nil
	}
	if err := probeManagement(c.Management); err != nil {
		c.Logger.Error("no answers to the gobgp command", "address", c.Management, "err", err,
			"remedy", "choose a free address: bgp.management in controller.yaml, --target or --port of gobgp")
		return nil
	}
	return []gobgpserver.ServerOption{gobgpserver.GrpcListenAddress(c.Management), gobgpserver.GrpcOption(managementOptions())}
}

// probeManagement tells why the API cannot listen at an address. GoBGP would find out too late to be asked why.
func probeManagement(address string) error {
	network, where := "tcp", address
	if socket, ok := strings.CutPrefix(address, unixScheme); ok {
		network, where = "unix", socket
		if err := removeDeadSocket(socket); err != nil {
			return err
		}
	}
	l, err := net.Listen(network, where)
	if err != nil {
		return err
	}
	return l.Close() // which removes a Unix socket as well
}

// removeDeadSocket removes the socket of a process that was killed.
func removeDeadSocket(socket string) error {
	info, err := os.Lstat(socket)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s is there, and no socket", socket)
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		conn.Close()
		return fmt.Errorf("%s: somebody listens there", socket)
	}
	return os.Remove(socket)
}

// managementOptions bound the API and let only questions through.
func managementOptions() []grpc.ServerOption {
	asked := make(chan struct{}, maxQuestions)
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxQuestion),
		grpc.MaxHeaderListSize(8 << 10),
		grpc.MaxConcurrentStreams(maxQuestions),
		grpc.ConnectionTimeout(5 * time.Second),
		// Events queue up without a bound for a client that watches and does not read: it is cut off.
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: maxIdle, MaxConnectionAge: maxConversation, MaxConnectionAgeGrace: time.Second,
		}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
			err = ask(asked, info.FullMethod, func() error {
				answer, err = handle(ctx, req)
				return err
			})
			return answer, err
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return ask(asked, info.FullMethod, func() error { return handle(srv, withoutPasswords{stream}) })
		}),
	}
}

// ask answers a question if it is one, and not too many are asked at once. A question that GoBGP stumbles over must not
// end the member.
func ask(asked chan struct{}, method string, answer func() error) (err error) {
	method = method[strings.LastIndex(method, "/")+1:]
	if !isQuestion(method) {
		return status.Errorf(codes.PermissionDenied, "%s: refused: this API is read-only, what is announced comes from the record; "+
			"look with `fairlead get peers` and `fairlead get services`, change Services and peers at their source (manifests or Kubernetes)", method)
	}
	select {
	case asked <- struct{}{}:
		defer func() { <-asked }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%s: %d questions are being answered; ask again later", method, maxQuestions)
	}
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "%s: no answer to such a question: %v", method, p)
		}
	}()
	return answer()
}

// isQuestion tells whether a method of GoBGP's API only shows something.
func isQuestion(method string) bool {
	for _, verb := range []string{"List", "Get", "Watch"} {
		if strings.HasPrefix(method, verb) {
			return true
		}
	}
	return false
}

// withoutPasswords is a stream of answers in which no password appears.
type withoutPasswords struct{ grpc.ServerStream }

// SendMsg sends one answer. GoBGP made it for this client alone.
func (s withoutPasswords) SendMsg(answer any) error {
	switch a := answer.(type) {
	case *api.ListPeerResponse:
		if c := a.GetPeer().GetConf(); c != nil {
			c.AuthPassword = ""
		}
	case *api.ListPeerGroupResponse:
		if c := a.GetPeerGroup().GetConf(); c != nil {
			c.AuthPassword = ""
		}
	}
	return s.ServerStream.SendMsg(answer)
}
