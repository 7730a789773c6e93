// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// managed starts a speaker that only dials, with the API, and a client of the API.
func managed(t *testing.T, address string) (*Speaker, api.GoBgpServiceClient) {
	t.Helper()
	s, err := New(Config{ASN: 65000, RouterID: addr("192.0.2.1"), Management: address, Logger: testLogger(t, "speaker")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Drain(context.Background()) })
	return s, client(t, address)
}

func client(t *testing.T, address string) api.GoBgpServiceClient {
	t.Helper()
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		network, where := "tcp", address
		if socket, ok := strings.CutPrefix(address, unixScheme); ok {
			network, where = "unix", socket
		}
		return (&net.Dialer{}).DialContext(ctx, network, where)
	}
	conn, err := grpc.NewClient("passthrough:///speaker", grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewGoBgpServiceClient(conn)
}

func loopback(t *testing.T) string {
	a := addr("127.0.0.1")
	return netip.AddrPortFrom(a, birdtest.FreePort(t, a)).String()
}

func list[T any](t *testing.T, stream interface{ Recv() (T, error) }, err error) (all []T) {
	t.Helper()
	for err == nil {
		var one T
		if one, err = stream.Recv(); err == nil {
			all = append(all, one)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return all
}

func TestClientsOfGoBGPSeeNeighboursAndTableButNoPassword(t *testing.T) {
	parallel(t)
	t.Run("tcp", func(t *testing.T) { seesNoPassword(t, loopback(t)) })
	t.Run("unix", func(t *testing.T) { seesNoPassword(t, unixScheme+filepath.Join(t.TempDir(), "g.sock")) })
}

func seesNoPassword(t *testing.T, address string) {
	s, c := managed(t, address)
	const secret = "swordfish"
	apply(t, s, bgp.Desired{
		Peers: []bgp.Peer{{
			Address: addr("127.0.0.9"), Port: 1, RemoteASN: 65001,
			Families: []bgp.Family{bgp.IPv4}, Password: secret,
		}},
		Paths: bgp.NewPaths(path(vip, hop1), path(vip, hop2)),
	})
	peers, err := c.ListPeer(t.Context(), &api.ListPeerRequest{})
	got := list(t, peers, err)
	if len(got) != 1 || got[0].GetPeer().GetConf().GetNeighborAddress() != "127.0.0.9" || strings.Contains(fmt.Sprint(got), secret) {
		t.Errorf("neighbours are %v", got)
	}
	paths, err := c.ListPath(t.Context(), &api.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}})
	table := list(t, paths, err)
	if len(table) != 1 || table[0].GetDestination().GetPrefix() != vip || len(table[0].GetDestination().GetPaths()) != 2 {
		t.Errorf("table is %v", table)
	}
	// The password is left out of what is shown, and stays in force.
	if o, err := s.everything(t.Context()); err != nil || len(o.Peers) != 1 || o.Peers[0].Password != secret {
		t.Errorf("the speaker has %+v, %v", o.Peers, err)
	}
}

// Every method of GoBGP's API that is no question is refused, whatever it is called; every other one is answered, or
// refused, and leaves the speaker as it was.
func TestClientsOfGoBGPChangeNothing(t *testing.T) {
	parallel(t)
	address := loopback(t)
	s, c := managed(t, address)
	apply(t, s, bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1))})
	p := &api.Path{Family: apiFamily(bgp.IPv4), Nlri: &api.NLRI{Nlri: &api.NLRI_Prefix{Prefix: &api.IPAddressPrefix{Prefix: "203.0.113.99", PrefixLen: 32}}}}
	_, err := c.AddPath(t.Context(), &api.AddPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Path: p})
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "AddPath: refused") || !strings.Contains(err.Error(), "`fairlead get peers`") {
		t.Errorf("adding a path: %v", err)
	}

	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call := func(method string, streams bool) error {
		within := testkit.Patience
		if method == "WatchEvent" { // has no end of its own
			within = 100 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		if !streams {
			// An empty message of any kind is no byte.
			return conn.Invoke(ctx, "/"+api.GoBgpService_ServiceDesc.ServiceName+"/"+method, &api.GetBgpRequest{}, &api.AddPathResponse{})
		}
		desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
		stream, err := conn.NewStream(ctx, desc, "/"+api.GoBgpService_ServiceDesc.ServiceName+"/"+method)
		if err != nil {
			return err
		}
		_ = stream.SendMsg(&api.GetBgpRequest{}) // may be refused already: RecvMsg tells
		_ = stream.CloseSend()
		return stream.RecvMsg(&api.AddPathResponse{})
	}
	asked, refused := 0, 0
	check := func(method string, streams bool) {
		err := call(method, streams)
		question := slices.ContainsFunc([]string{"List", "Get", "Watch"}, func(v string) bool { return strings.HasPrefix(method, v) })
		if question {
			asked++
		} else {
			refused++
		}
		if denied := status.Code(err) == codes.PermissionDenied; denied == question {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, m := range api.GoBgpService_ServiceDesc.Methods {
		check(m.MethodName, false)
	}
	for _, m := range api.GoBgpService_ServiceDesc.Streams {
		check(m.StreamName, true)
	}
	if asked < 10 || refused < 30 {
		t.Errorf("%d questions, %d others", asked, refused)
	}
	o, err := s.everything(t.Context())
	if err != nil || len(o.Paths) != 1 {
		t.Errorf("the speaker has %v, %v", o.Paths, err)
	}
}

func TestTooManyQuestionsAtOnceAreRefused(t *testing.T) {
	parallel(t)
	address := loopback(t)
	_, c := managed(t, address)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func() codes.Code {
		_, err := c.GetBgp(t.Context(), &api.GetBgpRequest{})
		return status.Code(err)
	}
	testkit.Until(t, "a refusal", func() bool {
		if get() == codes.ResourceExhausted {
			return true
		}
		// One more that goes on, by a connection of its own: the bound is not that of a connection.
		if _, err := client(t, address).WatchEvent(ctx, &api.WatchEventRequest{Peer: &api.WatchEventRequest_Peer{}}); err != nil {
			t.Fatal(err)
		}
		return false
	})
	cancel()
	testkit.Until(t, "an answer", func() bool { return get() == codes.OK })
}

// A question that GoBGP stumbles over is an error of the client.
func TestQuestionThatPanicsEndsNothing(t *testing.T) {
	err := ask(make(chan struct{}, 1), "/apipb.GobgpApi/ListPath", func() error { panic("nil") })
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "ListPath") {
		t.Errorf("error is %v", err)
	}
}

// The check by hand must not cost the routes: kube-router, for one, listens at GoBGP's usual port.
func TestTakenAddressCostsTheAPIOnly(t *testing.T) {
	parallel(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log bytes.Buffer
	s, err := New(Config{
		ASN: 65000, RouterID: addr("192.0.2.1"), Management: l.Addr().String(),
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), l.Addr().String()) || !strings.Contains(log.String(), "bgp.management") {
		t.Errorf("log is %q", log.String())
	}
}

// A process that was killed leaves its socket, which is in nobody's way; what else has that name is not ours.
func TestSocketOfAKilledProcessIsReplaced(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := probeManagement(unixScheme + dead); err == nil {
		t.Error("a socket in use was taken")
	}
	_ = l.Close()
	if err := probeManagement(unixScheme + dead); err != nil {
		t.Errorf("socket left behind: %v", err)
	}
	if err := probeManagement(unixScheme + dir); err == nil {
		t.Error("a folder was taken for a socket")
	}
}

// A speaker that stopped listens no more: the next one in this process may.
func TestStoppedSpeakerAnswersNobody(t *testing.T) {
	parallel(t)
	address := loopback(t)
	s, _ := managed(t, address)
	if err := s.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the address to be free", func() bool { return probeManagement(address) == nil })
}
