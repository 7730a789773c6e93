// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/internal/connlimit"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/admission"
)

// served runs the port at which the API server asks, with the handlers that are asked there, and gives a client that
// trusts what members say it should.
func served(t *testing.T, admits config.Admission, change func(*tls.Config)) (address string, client *http.Client) {
	t.Helper()
	return servedCounting(t, prometheus.NewRegistry(), admits, change)
}

// servedCounting is served that counts.
func servedCounting(t *testing.T, counts *prometheus.Registry, admits config.Admission, change func(*tls.Config)) (address string, client *http.Client) {
	t.Helper()
	admits.Names = []string{"lbcf-controller.kube-system.svc"}
	ca := pkitest.New(t)
	files := ca.Issue(t, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"192.0.2.11"}})
	var l Listeners
	for _, listener := range []*net.Listener{&l.API, &l.Raft, &l.Admission} {
		var err error
		if *listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	network, err := openNetwork(member.NetworkOptions{
		Config: config.Controller{
			Name: "m1", DataDir: t.TempDir(), TLS: config.MemberTLS{TLS: config.TLS(files), CAKey: ca.Key()},
			Admission: admits, Advertise: config.Advertise{Raft: l.Raft.Addr().String()},
		},
		Self: func() pki.Membership { return pki.Membership{} }, Log: slog.New(slog.DiscardHandler), Metrics: counts,
	}, l)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for path, h := range (&admission.Handler{}).Routes() {
		mux.Handle(path, h)
	}
	mux.HandleFunc("/stack", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(debug.Stack()) // it is read to its end
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- network.Admission.Serve(ctx, mux) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		network.Close()
	})
	bundle, err := network.Admission.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	c := &tls.Config{RootCAs: roots, ServerName: "lbcf-controller.kube-system.svc"}
	if change != nil {
		change(c)
	}
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return "https://" + l.Admission.Addr().String(), &http.Client{Transport: transport, Timeout: testkit.Patience}
}

// Without a certificate of its own, by the name of LBCF's Service, the API server is answered; what is too large is not
// read to its end.
func TestAdmissionAnswersTheAPIServerAndBoundsWhatItReads(t *testing.T) {
	at, client := served(t, config.Admission{}, nil)
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"shop","name":"web",
		"object":{"metadata":{"name":"web","namespace":"shop"},"spec":{"lbName":"edge","padding":"`
	for name, c := range map[string]struct {
		path   string
		bytes  int
		status int
	}{
		"an-object":        {admission.PathMutateBackendGroup, 10, http.StatusOK},
		"the-misspelt-one": {admission.PathMutateBackendGroupOld, 10, http.StatusOK},
		"a-large-one":      {admission.PathMutateBackendGroup, 3 << 20, http.StatusOK},
		"too-large":        {admission.PathMutateBackendGroup, 9 << 20, http.StatusRequestEntityTooLarge},
		"nothing-there":    {"/metrics", 10, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := client.Post(at+c.path, "application/json", strings.NewReader(review+strings.Repeat("x", c.bytes)+`"}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != c.status || c.status == http.StatusOK && !strings.Contains(string(body), `"patch":`) {
				t.Errorf("%d, %v: %.200s", response.StatusCode, err, body)
			}
		})
	}
}

// As the API, by the HTTP/2 of a module of its own.
func TestAdmissionIsServedByTheHTTP2OfAModule(t *testing.T) {
	at, client := served(t, config.Admission{}, nil)
	response, err := client.Get(at + "/stack")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	stack, err := io.ReadAll(response.Body)
	if err != nil || response.Proto != "HTTP/2.0" || !strings.Contains(string(stack), "golang.org/x/net/http2.(*serverConn)") {
		t.Errorf("by %s, %v:\n%s", response.Proto, err, stack)
	}
}

func TestAdmissionSpeaksNoOldTLS(t *testing.T) {
	at, client := served(t, config.Admission{}, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	response, err := client.Get(at)
	if err == nil {
		response.Body.Close()
		t.Error("answered by TLS 1.1")
	} else if !strings.Contains(err.Error(), "protocol version") {
		t.Error(err)
	}
}

// However many connect, and finish their handshake or do not, the API server is answered, on a connection that it has and on
// a new one.
func TestAdmissionIsClosedByNoCrowd(t *testing.T) {
	at, client := served(t, config.Admission{}, nil)
	ask := func() {
		t.Helper()
		response, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	ask()
	address := strings.TrimPrefix(at, "https://")
	dial := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}
	for i := range 400 {
		conn, err := dial.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if i%4 != 0 {
			continue
		}
		if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	client.CloseIdleConnections()
	ask()
}

// With a CA of the API server's, nobody else asks.
func TestAdmissionIsForTheAPIServerAlone(t *testing.T) {
	callers := pkitest.New(t)
	pair := func(ca pkitest.CA, name string) tls.Certificate {
		files := ca.Issue(t, pki.Request{Role: pki.Operator, Name: name})
		c, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	admits := config.Admission{ClientCA: callers.Cert(), ClientNames: []string{"kube-apiserver"}}
	for name, c := range map[string]struct {
		shows    []tls.Certificate
		answered bool
	}{
		"the-api-server": {[]tls.Certificate{pair(callers, "kube-apiserver")}, true},
		"nobody":         {nil, false},
		"another-name":   {[]tls.Certificate{pair(callers, "alice")}, false},
		"another-ca":     {[]tls.Certificate{pair(pkitest.New(t), "kube-apiserver")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			at, client := served(t, admits, func(config *tls.Config) {
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if len(c.shows) == 0 {
						return &tls.Certificate{}, nil
					}
					return &c.shows[0], nil
				}
			})
			response, err := client.Get(at)
			if err == nil {
				response.Body.Close()
			}
			if (err == nil) != c.answered {
				t.Errorf("answered %v: %v", err == nil, err)
			}
		})
	}
}

// once is a listener with one connection.
type once struct {
	net.Listener
	conn net.Conn
}

func (o once) Accept() (net.Conn, error) { return o.conn, nil }

// called is a connection of a caller, who has a certificate for an hour, after its handshake. What the caller hears is told once.
func called(t *testing.T, asked tls.ClientAuthType) (server *tls.Conn, ended <-chan error) {
	t.Helper()
	files := pkitest.New(t).Issue(t, pki.Request{Role: pki.Operator, Name: "kube-apiserver", TTL: time.Hour})
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	limited, err := connlimit.Limit(once{conn: theirs}, connlimit.Options{Limits: admissionLimits()}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = tls.Server(limited, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: asked})
	client := tls.Client(ours, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
	heard := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		heard <- err
	}()
	if err := server.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, heard
}

// Callers leave the places of strangers once their handshake is done.
func TestCallersAreNoStrangers(t *testing.T) {
	for asked, want := range map[tls.ClientAuthType]connlimit.Stage{tls.NoClientCert: connlimit.Guest, tls.RequireAnyClientCert: connlimit.Known} {
		synctest.Test(t, func(t *testing.T) {
			server, ended := called(t, asked)
			vouchForCaller(server, http.StateActive)
			if stage := connlimit.Of(server).Stage(); stage != want {
				t.Errorf("%v: it is %v, want %v", asked, stage, want)
			}
			_ = server.Close()
			<-ended
		})
	}
}

// Whoever asks after the time of his certificate, on a connection that he opened before, is not answered there.
func TestCallersDoNotOutliveTheirCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, ended := called(t, tls.RequireAnyClientCert)
		vouchForCaller(server, http.StateActive)
		time.Sleep(time.Hour - time.Second)
		vouchForCaller(server, http.StateActive)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("ended too soon: %v", err)
		default:
		}
		time.Sleep(2 * time.Second)
		vouchForCaller(server, http.StateActive)
		if err := <-ended; err == nil {
			t.Error("it was told something")
		}
	})
}

// Whoever floods the port waits, and so does nobody else for long: so many requests are in at a time.
func TestAdmissionLetsSoManyInAtATime(t *testing.T) {
	in, out := make(chan bool), make(chan bool)
	h := atATime(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { in <- true; <-out }))
	ask := func(ctx context.Context) { h.ServeHTTP(nopWriter{}, (&http.Request{}).WithContext(ctx)) }
	for range 2 {
		go ask(t.Context())
		<-in
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ask(gone) // returns: it was never let in
	go ask(t.Context())
	select {
	case <-in:
		t.Error("three at a time")
	default:
	}
	out <- true
	<-in // now
	out <- true
	out <- true
}

type nopWriter struct{}

func (nopWriter) Header() http.Header         { return http.Header{} }
func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }
func (nopWriter) WriteHeader(int)             {}
