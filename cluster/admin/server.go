// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/framelimit"
)

const (
	handshakeWithin = 10 * time.Second // also the time for a request's header
	enrolWithin     = 20 * time.Second // of a connection without certificate, on which one call is made
	writeWithin     = 15 * time.Second // for one write, which is a part of a message
	idleWithin      = 5 * time.Minute
	stopWithin      = 5 * time.Second // for calls under way when the server ends
	maxHeaderBytes  = 16 << 10        // a GET carries its message in the address
	streamsPerConn  = 250
	pingAfter       = 15 * time.Second // finds peers that vanished without a word
	pingWithin      = 10 * time.Second
)

// limits of the API port. All agents may come at once, after a member was away; an agent needs two connections.
func limits() connlimit.Limits {
	return connlimit.Limits{
		Strangers:      connlimit.Room{Total: 1024, PerKey: 64},
		Guests:         connlimit.Room{Total: 128, PerKey: 32},
		Known:          connlimit.Room{Total: 16384, PerKey: 64},
		StrangerWithin: handshakeWithin,
		GuestWithin:    enrolWithin,
		WriteWithin:    writeWithin,
	}
}

// ServerOptions is what a Server is made of.
type ServerOptions struct {
	Endpoint *pki.Endpoint // with Refusals; only for Serve
	Members  []netip.Addr  // optional: addresses of others, from which strangers take no places; only for Serve
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	Now      func() time.Time // optional, time.Now
	Standing Standing
}

// Server is the API port of a member: mutual TLS 1.3, HTTP/2 and HTTP/1.1, all services on one mux.
type Server struct {
	endpoint *pki.Endpoint
	limits   connlimit.Options
	frames   framelimit.Options
	log      *slog.Logger
	mux      *http.ServeMux
	gate     *gate
	stop     context.CancelFunc
}

// NewServer makes a server without services; see Mount. Errors: the metrics are registered already.
func NewServer(o ServerOptions) (*Server, error) {
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	connections, err := connlimit.NewMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	frames, err := framelimit.NewMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	repeats := pki.NewRepeats(o.Now)
	stopping, stop := context.WithCancel(context.Background())
	return &Server{
		endpoint: o.Endpoint,
		limits:   connlimit.Options{Port: string(pki.API), Limits: limits(), Metrics: connections, Members: o.Members},
		frames:   framelimit.Options{Port: string(pki.API), Who: whoSends, Metrics: frames, Slowed: slowed(o.Log, repeats)},
		log:      o.Log,
		mux:      http.NewServeMux(),
		gate: &gate{
			table: accessTable(), log: o.Log, metrics: m, repeats: repeats, now: o.Now, stopping: stopping, standing: o.Standing,
			callers: newCallers(o.Now),
		},
		stop: stop,
	}, nil
}

// Mount adds a service. The options that make the table of roles count are handed to its constructor:
//
//	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
//		return fairleadv1connect.NewRaftServiceHandler(raft, o...)
//	})
//
// Call it before Serve.
func (s *Server) Mount(service func(...connect.HandlerOption) (path string, handler http.Handler)) {
	path, handler := service(s.gate.options()...)
	s.mux.Handle(path, s.bounded(handler))
}

// MountPage adds what is no service, for callers with one of the roles: the status page. Call it before Serve.
func (s *Server) MountPage(path string, page http.Handler, roles ...pki.Role) {
	rule := access{roles: roles}
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		caller, _ := CallerFrom(r.Context())
		refusal := s.gate.standing.fault(caller, path, s.gate.now())
		if refusal == nil {
			refusal = rule.admit(caller, path)
		}
		if refusal != nil {
			s.gate.refused(caller, path, refusal)
			http.Error(w, refusal.Error(), http.StatusForbidden)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// bounded counts calls as under way, and gives those that are no streams an end, also for a caller who sends or reads a byte at a time. Where requests
// come without a connection of their own (see Handler) there is nothing to bound.
func (s *Server) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if within := s.gate.table[r.URL.Path].within; within > 0 {
			end := s.gate.now().Add(within + stopWithin) // the handler's own deadline comes first, and says why
			control := http.NewResponseController(w)
			for _, set := range []func(time.Time) error{control.SetReadDeadline, control.SetWriteDeadline} {
				if err := set(end); err != nil && !errors.Is(err, http.ErrNotSupported) {
					s.log.Error("deadline not set", "procedure", r.URL.Path, "err", err)
				}
			}
		}
		ctx, leave := counted(r.Context())
		defer leave()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Handler serves requests whose caller somebody else established, and put into their context: see WithCaller. Those
// without one are refused. Serve does it for connections with mutual TLS; whoever has requests from elsewhere calls
// Stop at the end.
func (s *Server) Handler() http.Handler { return s.mux }

// EndStale ends the streams whose callers would be refused by now: their certificate is over or was revoked, or they serve no more. It
// is called now and then, and when something was revoked.
func (s *Server) EndStale() { s.gate.streams.endStale(s.gate.refuse) }

// Stop ends the streams under way and those that begin later. Serve does it itself.
func (s *Server) Stop() { s.stop() }

// Serve accepts connections until ctx ends or the listener fails, then gives the calls under way five seconds
// and ends streams at once. It closes the listener. It returns nil when ctx ended. It can be called once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           http.HandlerFunc(s.identify),
		TLSConfig:         s.endpoint.Server(pki.API),
		ReadHeaderTimeout: handshakeWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeaderBytes,
		// What matters about handshakes is logged in pki; this is about port scanners.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streamsPerConn, SendPingTimeout: pingAfter, PingTimeout: pingWithin,
		},
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ConnState: s.vouch,
	}
	if err := framelimit.Configure(server, s.frames); err != nil {
		return errors.Join(fmt.Errorf("serve the API on %s: %w", listener.Addr(), err), listener.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(pki.Wrap(connlimit.Limit(listener, s.limits)), "", "") }()
	select {
	case err := <-failed:
		s.Stop()
		return fmt.Errorf("serve the API on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	s.Stop()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		_ = server.Close() // whoever is still there had his time
	}
	<-failed
	return nil
}

type connKey struct{}

// vouch tells the limits of the port who a connection is of, once its handshake is done.
func (s *Server) vouch(conn net.Conn, state http.ConnState) {
	secured, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	if !ok || state != http.StateActive {
		return
	}
	limited, shown := connlimit.Of(conn), secured.ConnectionState().PeerCertificates
	if limited.Stage() > connlimit.Unproven {
		return // each request on it comes by here
	}
	if len(shown) == 0 {
		limited.Vouch(connlimit.Guest, "")
		return
	}
	identity, err := pki.Identify(shown[0])
	if err != nil {
		return // the request says why
	}
	limited.Vouch(connlimit.Known, identity.String())
}

// identify finds out who is calling; the handshake has proven that the certificate is in order.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) {
	conn, ok := r.Context().Value(connKey{}).(*tls.Conn)
	if !ok || r.TLS == nil {
		http.Error(w, "connect with mutual TLS", http.StatusForbidden)
		return
	}
	caller := Caller{Remote: r.RemoteAddr}
	accepted, watched := conn.NetConn().(*pki.Conn)
	if watched {
		caller.Membership = accepted.Offer()
	}
	switch {
	case len(r.TLS.PeerCertificates) > 0:
		identity, err := pki.Identify(r.TLS.PeerCertificates[0])
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		caller.Identity, caller.Certificate = identity, r.TLS.PeerCertificates[0]
		caller.Serial = pki.Serial(caller.Certificate)
	case watched && accepted.Stranger():
		caller.Identity = pki.Identity{Role: Nobody}
	default:
		http.Error(w, "connect with mutual TLS", http.StatusForbidden)
		return
	}
	s.Handler().ServeHTTP(w, r.WithContext(WithCaller(r.Context(), caller)))
}
