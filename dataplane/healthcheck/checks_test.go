// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/connlimit"
)

// inWorld runs a test with one node, whose log is said, in a bubble of time.
func inWorld(t *testing.T, f func(t *testing.T, node *machine, c *Checks, said *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node, said := newMachine(), &bytes.Buffer{}
		c, stop, err := run(node, slog.New(slog.NewTextHandler(said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		f(t, node, c, said)
	})
}

func web(port uint16, endpoints ...desired.Endpoint) *desired.Service {
	return &desired.Service{Name: "shop/web", Local: true, HealthCheckNodePort: port, Endpoints: endpoints}
}

// K24: body and headers are those of kube-proxy 1.36 (pkg/proxy/healthcheck), whatever is asked for.
// Rule: K24.
func TestAnswerIsThatOfKubeProxy(t *testing.T) {
	inWorld(t, func(t *testing.T, node *machine, c *Checks, _ *bytes.Buffer) {
		c.Apply([]*desired.Service{web(30100, endpoint("10.0.0.1", "n1", true), endpoint("10.0.0.2", "n1", true), endpoint("10.0.0.3", "n2", true))})
		response, body, err := node.ask(30100, true)
		if err != nil {
			t.Fatal(err)
		}
		want := "{\n\t\"service\": {\n\t\t\"namespace\": \"shop\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}"
		if body != want || response.StatusCode != 200 {
			t.Errorf("%d %s, want %s", response.StatusCode, body, want)
		}
		for header, want := range map[string]string{
			"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "X-Load-Balancing-Endpoint-Weight": "2",
		} {
			if got := response.Header.Get(header); got != want {
				t.Errorf("%s: %q, want %q", header, got, want)
			}
		}
		node.sick = true
		if response, body, err = node.ask(30100, true); err != nil || response.StatusCode != 503 || !strings.Contains(body, `"serviceProxyHealthy": false`) {
			t.Errorf("a node that is not in order: %v %s, %v", response, body, err)
		}
	})
}

// KEP-1669: load balancers leave a node whose last endpoints end, while those still serve who come.
// Rule: K24.
func TestEndpointsThatTerminateDoNotCount(t *testing.T) {
	inWorld(t, func(t *testing.T, node *machine, c *Checks, _ *bytes.Buffer) {
		c.Apply([]*desired.Service{web(30100, endpoint("10.0.0.1", "n1", false))})
		if response, body, err := node.ask(30100, true); err != nil || response.StatusCode != 503 {
			t.Errorf("%v %s, %v", response, body, err)
		}
	})
}

// An endpoint whose slice has no port for it, as where the pod lacks the named one, serves nobody.
func TestEndpointsWithoutAPortDoNotCount(t *testing.T) {
	e := endpoint("10.0.0.1", "n1", true)
	e.Ports = nil
	if checks, _ := Plan([]*desired.Service{web(30100, e)}, "n1"); checks[30100] != (Check{Service: "shop/web"}) {
		t.Errorf("%+v", checks)
	}
}

func TestMorePortsThanABoundAreRefused(t *testing.T) {
	var services []*desired.Service
	for i := range portsMax + 1 {
		services = append(services, web(uint16(1024+i)))
	}
	if checks, refused := Plan(services, "n1"); len(checks) != portsMax || len(refused) != 1 {
		t.Errorf("%d open, refused %v", len(checks), refused)
	}
}

// What stands in the way is said once, however often it is tried, and so is that it ended.
func TestPortThatIsHeldIsSaidOnceAndTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, node *machine, c *Checks, said *bytes.Buffer) {
		node.others[30100] = true
		for range 3 {
			c.Apply([]*desired.Service{web(30100), {Name: "shop/web2", HealthCheckNodePort: 30100}})
			time.Sleep(time.Minute)
		}
		for _, once := range []string{"health-check node port not open", "address already in use", "Service shop/web has the port"} {
			if n := strings.Count(said.String(), once); n != 1 {
				t.Errorf("%q is said %d times:\n%s", once, n, said)
			}
		}
		node.mu.Lock()
		node.others[30100] = false
		node.mu.Unlock()
		time.Sleep(retryMax)
		if _, _, err := node.ask(30100, true); err != nil || !strings.Contains(said.String(), "open at last") {
			t.Errorf("%v:\n%s", err, said)
		}
	})
}

// A port that goes takes its connections along, and is free at once.
func TestPortThatGoesIsFreeAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, node *machine, c *Checks, _ *bytes.Buffer) {
		c.Apply([]*desired.Service{web(30100)})
		conn, err := node.dial(30100, true)
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(nil)
		if node.socket(30100) != nil {
			t.Error("the port is still open")
		}
		begin := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF || time.Since(begin) != 0 {
			t.Errorf("a connection of a port that is gone: %v after %v", err, time.Since(begin))
		}
		for range 100 { // also before anybody accepted there
			c.Apply([]*desired.Service{web(30100)})
			c.Apply(nil)
			if node.socket(30100) != nil {
				t.Fatal("the port is still open")
			}
		}
	})
}

// A listener that ends by itself is made anew.
func TestPortThatBreaksIsOpenedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, node *machine, c *Checks, said *bytes.Buffer) {
		c.Apply([]*desired.Service{web(30100)})
		_ = node.socket(30100).Close()
		time.Sleep(retryMin)
		synctest.Wait()
		if _, _, err := node.ask(30100, true); err != nil || !strings.Contains(said.String(), "the socket is gone") {
			t.Errorf("%v:\n%s", err, said)
		}
	})
}

// Who connects and says nothing is left alone by none of the bounds: it is ended for its time, or for newer ones.
func TestConnectionsAreBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, node *machine, c *Checks, _ *bytes.Buffer) {
		few := limits()
		few.Strangers = connlimit.Room{Total: 3, PerKey: 3}
		c.limiter = connlimit.New(connlimit.Options{Port: "healthcheck", Limits: few})
		c.Apply([]*desired.Service{web(30100, endpoint("10.0.0.1", "n1", true)), {Name: "shop/x", HealthCheckNodePort: 30101}})
		var silent []net.Conn
		for i := range 5 {
			conn, err := node.dial(ports[i%2], true)
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, conn)
			synctest.Wait()
		}
		if response, _, err := node.ask(30100, true); err != nil || response.StatusCode != 200 {
			t.Errorf("beside others that say nothing: %v, %v", response, err)
		}
		begin := time.Now()
		for i, conn := range silent {
			want := exchangeTime
			if i < 3 { // the bound's worth of newer ones came
				want = 0
			}
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF || time.Since(begin) != want {
				t.Errorf("connection %d of 5: %v after %v, want it to end after %v", i, err, time.Since(begin), want)
			}
		}
	})
}

func TestLongHeadersAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, node *machine, c *Checks, _ *bytes.Buffer) {
		c.Apply([]*desired.Service{web(30100)})
		conn, err := node.dial(30100, true)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)) }() // it is cut off
		answer := make([]byte, 64)
		if n, err := conn.Read(answer); err != nil || !strings.Contains(string(answer[:n]), "431") {
			t.Errorf("%s, %v", answer[:n], err)
		}
		_ = conn.Close()
		time.Sleep(time.Second) // net/http lingers after it has refused
	})
}
