// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/testkit"
)

// desk is an API server with all services, behind mutual TLS. A call that gets as far as a service is answered Unimplemented.
type desk struct {
	ca       pkitest.CA
	server   *Server
	endpoint *pki.Endpoint
	address  string

	later   atomic.Int64           // by how much the member's clock has gone on
	revoked atomic.Pointer[string] // a name, or a serial number
	removed atomic.Bool            // the caller is no server of the group
}

// callerName is who calls, in whichever role.
const callerName = "x1"

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{ca: pkitest.New(t)}
	log, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	now := func() time.Time { return time.Now().Add(time.Duration(d.later.Load())) }
	refusals, err := pki.NewRefusals(log, registry, now)
	if err != nil {
		t.Fatal(err)
	}
	why := func(id pki.Identity, serial string, _ time.Time) string {
		if of := d.revoked.Load(); of != nil && (*of == id.Name || *of == serial) {
			return "revoked"
		}
		return ""
	}
	d.endpoint = &pki.Endpoint{
		Source: d.ca.Source(t, pki.Request{Role: pki.Member, Name: "m1"}), Self: func() pki.Membership { return pki.Membership{Group: "g1", Epoch: 1} }, Now: now,
		Refusals: refusals, Enrols: true, Revoked: why, Clients: &pki.Clients{},
	}
	d.server, err = NewServer(ServerOptions{Endpoint: d.endpoint, Log: log, Metrics: registry, Now: now, Standing: Standing{
		Revoked: why, Serves: func(string) bool { return !d.removed.Load() },
	}})
	if err != nil {
		t.Fatal(err)
	}
	d.mount()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return d
}

// mount adds each service that there is; calls of one that is missing here come to nobody, which the test notices.
func (d *desk) mount() {
	d.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(fairleadv1connect.UnimplementedAgentServiceHandler{}, o...)
	})
	d.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewEnrolServiceHandler(fairleadv1connect.UnimplementedEnrolServiceHandler{}, o...)
	})
	d.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewJoinServiceHandler(fairleadv1connect.UnimplementedJoinServiceHandler{}, o...)
	})
	d.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewLivenessServiceHandler(fairleadv1connect.UnimplementedLivenessServiceHandler{}, o...)
	})
	d.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRaftServiceHandler(fairleadv1connect.UnimplementedRaftServiceHandler{}, o...)
	})
	d.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRecordServiceHandler(fairleadv1connect.UnimplementedRecordServiceHandler{}, o...)
	})
}

// visitor is somebody in a role, who dials himself: a transport that is asked twice may come to have two connections, whenever the first
// is late to be idle.
type visitor struct {
	d         *desk
	serial    string
	transport *http.Transport
}

func (d *desk) visitor(t *testing.T, role pki.Role) *visitor {
	t.Helper()
	v := &visitor{d: d}
	endpoint := &pki.Endpoint{}
	if role == Nobody {
		roots, err := pki.ReadRoots(d.ca.Issue(t, pki.Request{Role: pki.Viewer, Name: "unused"}).CA)
		if err != nil {
			t.Fatal(err)
		}
		endpoint.Roots = roots
	} else {
		endpoint.Source = d.ca.Source(t, pki.Request{Role: role, Name: callerName})
		v.serial = pki.Serial(endpoint.Source.Material().Certificate.Leaf)
		if role == pki.Member {
			endpoint.Self = d.endpoint.Self
		}
	}
	v.transport = &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return endpoint.Dial(ctx, (&net.Dialer{}).DialContext, pki.API, address) // which does the TLS
	}}
	v.transport.Protocols.SetUnencryptedHTTP2(true)
	return v
}

// dial gives one connection more, which is open until the test ends.
func (v *visitor) dial(t *testing.T) (*http.ClientConn, error) {
	t.Helper()
	conn, err := v.transport.NewClientConn(t.Context(), "http", v.d.address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, nil
}

// callAnew makes a call on a connection of its own.
func (v *visitor) callAnew(t *testing.T, m method) (connect.Code, error) {
	t.Helper()
	conn, err := v.dial(t)
	if err != nil {
		return 0, err
	}
	return v.call(t.Context(), conn, m)
}

// errNoAnswer says that a call came to no server, or to no service there.
var errNoAnswer = errors.New("no answer of gRPC")

// call makes a call over gRPC, in which streams and others are alike, and gives the code of its answer.
func (v *visitor) call(ctx context.Context, conn *http.ClientConn, m method) (connect.Code, error) {
	message := dynamicpb.NewMessage(m.input)
	for _, about := range []protoreflect.Name{"node", "name"} {
		if f := m.input.Fields().ByName(about); f != nil && f.Kind() == protoreflect.StringKind {
			message.Set(f, protoreflect.ValueOfString(callerName))
		}
	}
	body, err := proto.Marshal(message)
	if err != nil {
		return 0, err
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.d.address+m.procedure, bytes.NewReader(append(frame, body...)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/grpc")
	answer, err := conn.RoundTrip(req)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	status := answer.Trailer.Get("Grpc-Status") + answer.Header.Get("Grpc-Status") // one of them
	var code connect.Code
	if _, scan := fmt.Sscan(status, &code); err != nil || scan != nil {
		return 0, fmt.Errorf("%w: HTTP %d, %w", errNoAnswer, answer.StatusCode, errors.Join(err, scan))
	}
	return code, nil
}

// how a caller may come to stand while its connection is open, and what it may call then.
var standings = []struct {
	name   string
	change func(*desk, *visitor)
	// may is what of the calls of its role it may make still; connects whether it gets a new connection.
	may      func(access) bool
	connects bool
	only     []pki.Role // to whom it can happen; nil: everybody with a certificate
}{
	{"revoked", func(d *desk, _ *visitor) { name := callerName; d.revoked.Store(&name) }, nothing, false, nil},
	{"revoked-by-number", func(d *desk, v *visitor) { d.revoked.Store(&v.serial) }, nothing, false, nil},
	{"expired", func(d *desk, _ *visitor) { d.later.Store(int64(100 * 24 * time.Hour)) }, nothing, false, nil},
	{"removed", func(d *desk, _ *visitor) { d.removed.Store(true) }, func(a access) bool { return a.newcomers }, true, []pki.Role{pki.Member}},
}

func nothing(access) bool    { return false }
func everything(access) bool { return true }

// Each call of the API by each role, over real connections: whoever is in order gets to what his role may call and to nothing else; whoever is
// revoked, or whose certificate is over, to nothing at all on the connection that he has, which ends, and to no other one; a
// member that was removed to what lets it come back. A call that the API has gained fails this until it is in the table.
func TestEachCallByEachRoleHoweverItStands(t *testing.T) {
	t.Parallel()
	table, all := accessTable(), methods(t)
	for _, role := range append(pki.Roles(), Nobody) {
		for i, s := range standings {
			if s.only != nil && !slices.Contains(s.only, role) || role == Nobody && i > 0 {
				continue
			}
			t.Run(string(role)+"-"+s.name, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				v := d.visitor(t, role)
				check := func(how string, may func(access) bool, call func(method) (connect.Code, error)) {
					t.Helper()
					for _, m := range all {
						rule, known := table[m.procedure]
						want := connect.CodePermissionDenied
						if known && slices.Contains(rule.roles, role) && may(rule) {
							want = connect.CodeUnimplemented
						}
						if got, err := call(m); err != nil || got != want || !known {
							t.Errorf("%s, %s: %v, %v, want %v; in the table: %v", how, m.procedure, got, err, want, known)
						}
					}
				}
				if role == Nobody { // has one call on each connection, and no certificate that could end
					check("in order", everything, func(m method) (connect.Code, error) { return v.callAnew(t, m) })
					return
				}
				conn, err := v.dial(t)
				if err != nil {
					t.Fatal(err)
				}
				onOpen := func(m method) (connect.Code, error) { return v.call(t.Context(), conn, m) }
				check("in order", everything, onOpen)
				s.change(d, v)
				check("on the open connection", s.may, onOpen)
				d.server.EndStale()
				if ended := d.endpoint.EndStale(); (ended == 1) == s.connects {
					t.Errorf("%d connections ended", ended)
				}
				if s.connects {
					another := d.visitor(t, role) // with another certificate, which changes nothing
					check("on a new connection", s.may, func(m method) (connect.Code, error) { return another.callAnew(t, m) })
					return
				}
				testkit.Until(t, "the connection to end", func() bool {
					_, err := onOpen(all[0])
					return errors.Is(err, errNoAnswer)
				})
				for _, m := range all {
					if code, err := v.callAnew(t, m); !errors.Is(err, errNoAnswer) {
						t.Errorf("on a new connection, %s: %v, %v", m.procedure, code, err)
					}
				}
			})
		}
	}
}
