// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/internal/testkit"
)

// serve runs a driver until the test ends, or the function is called, and gives where.
func serve(t *testing.T, o kit.ServerOptions) (address string, end func() error) {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	s, err := kit.Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, newMemory()) }()
	t.Cleanup(stop)
	return s.Addr().String(), func() error {
		stop()
		return <-ended
	}
}

// A driver that is served with a certificate, a CA of callers and a token passes the conformance test of one who shows both,
// and turns everybody else away.
func TestServedDriversAskCallersWhoTheyAre(t *testing.T) {
	dir := t.TempDir()
	cert, key, file := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), filepath.Join(dir, "token")
	certify(t, cert, key)
	write(t, file, " open sesame\n")
	token, err := kit.ReadToken(file)
	if err != nil || token != "open sesame" {
		t.Fatalf("%q, %v", token, err)
	}
	var log testkit.Log
	o := kit.ServerOptions{Cert: cert, Key: key, ClientCA: cert}
	o.Token, o.Log = token, slog.New(slog.NewTextHandler(&log, nil))
	address, end := serve(t, o)
	for name, c := range map[string]struct {
		shows  bool
		token  string
		failed int
		why    string
		fix    string
	}{
		"both":           {true, token, 0, "", ""},
		"no-certificate": {false, token, 1, "certificate required", "--driver-cert"},
		"no-token":       {true, "", 1, "401 Unauthorized", "--token-file"},
		"wrong-token":    {true, "sesame", 1, "401 Unauthorized", "--token-file"},
	} {
		files := driver.TransportOptions{CA: read(t, cert)}
		if c.shows {
			files.Cert, files.Key = read(t, cert), read(t, key)
		}
		transport, err := driver.NewTransport(files)
		if err != nil {
			t.Fatal(err)
		}
		with := options
		with.URL, with.HTTP, with.Token, with.Timeout = "https://"+address, transport, c.token, 0
		report, err := kit.Test(t.Context(), with)
		transport.Close()
		switch {
		case err != nil || report.Failed != c.failed:
			t.Errorf("%s: %+v, %v", name, report, err)
		case c.failed > 0 && !(strings.Contains(report.Checks[0].Why, c.why) && strings.Contains(report.Checks[0].Remedy, c.fix)):
			t.Errorf("%s: %+v", name, report.Checks[0])
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("its log: %s", log.String())
	}
}

// Certificates that were renewed are taken without being told.
func TestRenewedCertificatesAreTakenByServers(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	pair := certify(t, cert, key)
	address, _ := serve(t, kit.ServerOptions{Cert: cert, Key: key, ClientCA: cert})
	ask := func() string {
		roots := x509.NewCertPool()
		roots.AddCert(pair.Leaf)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
		response, err := client.Post("https://"+address+"/healthz", "application/json", strings.NewReader("{}"))
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return string(text)
	}
	if got := ask(); got != `{"healthy":true}` {
		t.Errorf("with its certificate: %s", got)
	}
	renewed := certify(t, cert, key)
	if got := ask(); !strings.Contains(got, "certificate") {
		t.Errorf("with its former certificate: %s", got)
	}
	pair = renewed
	if got := ask(); got != `{"healthy":true}` {
		t.Errorf("with its new certificate: %s", got)
	}
}

func TestWhatNobodyCanBeServedWithIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	cert, key, empty := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), filepath.Join(dir, "empty")
	certify(t, cert, key)
	write(t, empty, "")
	for says, o := range map[string]kit.ServerOptions{
		"only one of them":             {Cert: cert},
		"in TLS only":                  {ClientCA: cert},
		"certificate " + empty:         {Cert: empty, Key: key},
		"no certificate in it":         {Cert: cert, Key: key, ClientCA: empty},
		"no such file":                 {Cert: cert, Key: key, ClientCA: filepath.Join(dir, "none")},
		"name an address of this mach": {Listen: "203.0.113.1:1"},
	} {
		if o.Listen == "" {
			o.Listen = "127.0.0.1:0"
		}
		if s, err := kit.Listen(t.Context(), o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v", says, s, err)
		}
	}
	if token, err := kit.ReadToken(empty); err == nil || !strings.Contains(err.Error(), "everybody could call") {
		t.Errorf("%q, %v", token, err)
	}
}

// certify writes a certificate that vouches for itself, for 127.0.0.1.
func certify(t *testing.T, cert, key string) tls.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "driver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
