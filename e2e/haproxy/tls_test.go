// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// The commands of docs/drivers.md make what the driver is served with, and what Fairlead's client calls it with; nobody
// else gets in.
func TestTheDocumentedCertificatesServe(t *testing.T) {
	dir := t.TempDir()
	runDocumented(t, dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p, "--token-file", in("token"), "--tls-cert", in("driver.crt"), "--tls-key", in("driver.key"), "--client-ca", in("ca.crt"))
	url := strings.Replace(d.url, "http:", "https:", 1)
	read := func(name string) []byte {
		text, err := os.ReadFile(in(name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	transport, err := driver.NewTransport(driver.TransportOptions{CA: read("ca.crt"), Cert: read("tls.crt"), Key: read("tls.key")})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	token, err := kit.ReadToken(in("token"))
	if err != nil {
		t.Fatal(err)
	}
	o := kit.TestOptions{URL: url, HTTP: transport, Token: token, LBSpec: webhook.Map{"backend": "web"}}
	if report, err := kit.Test(t.Context(), o); err != nil || report.Failed > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if response, err := http.Post(d.url+"/healthz", "application/json", strings.NewReader("{}")); err == nil {
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("it answers without TLS")
		}
	}
}

// runDocumented runs the commands of the docs that make certificates, for this machine.
func runDocumented(t *testing.T, dir string) {
	t.Helper()
	birdtest.Find(t, "openssl")
	text, err := os.ReadFile("../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    umask 077\n(    .*\n)+`).Find(text)
	if found == nil {
		t.Fatal("the commands are gone from docs/drivers.md")
	}
	cmd := exec.Command("sh", "-e", "-c", strings.ReplaceAll(string(found), "192.0.2.30", "127.0.0.1"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
