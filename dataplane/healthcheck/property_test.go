// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// model is what shall be seen of a node's ports.
type model struct {
	services map[string]*desired.Service
	others   map[uint16]bool // ports of other programs
	open     map[uint16]bool
}

// owner is who has a port: the first by name of those that want it.
func (m *model) owner(port uint16) *desired.Service {
	for _, name := range slices.Sorted(maps.Keys(m.services)) {
		if m.services[name].HealthCheckNodePort == port {
			return m.services[name]
		}
	}
	return nil
}

// look is an attempt to open all that is wanted.
func (m *model) look() {
	for _, port := range ports {
		m.open[port] = m.owner(port) != nil && !m.others[port]
	}
}

// ready counts the ready endpoints of a family on n1 by their addresses.
func ready(s *desired.Service, ipv4 bool) int {
	seen := []string{}
	for _, e := range s.Endpoints {
		text := strings.TrimPrefix(e.Address.String(), "::ffff:")
		if e.Node == "n1" && e.Ready && !e.Quiesced && strings.Contains(text, ".") == ipv4 && !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	return len(seen)
}

func drawService(t *rapid.T) *desired.Service {
	s := &desired.Service{
		Name:                rapid.SampledFrom([]string{"shop/a", "shop/b", "media/c"}).Draw(t, "service"),
		HealthCheckNodePort: rapid.SampledFrom(append([]uint16{0}, ports...)).Draw(t, "port"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, endpoint(
			rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "fd00::1", "fd00::2"}).Draw(t, "address"),
			rapid.SampledFrom([]string{"n1", "n1", "n2", ""}).Draw(t, "node"), rapid.Bool().Draw(t, "ready")))
		s.Endpoints[len(s.Endpoints)-1].Quiesced = rapid.IntRange(0, 3).Draw(t, "weight") == 0 // K40
	}
	return s
}

// step is one thing that happens to the node; it tells what.
func (m *model) step(t *rapid.T, node *machine, c *Checks) string {
	port := rapid.SampledFrom(ports).Draw(t, "which")
	what := rapid.SampledFrom([]string{"wait", "break", "put", "free", "hold", "delete", "put", "sicken"}).Draw(t, "step")
	switch what {
	case "put":
		s := drawService(t)
		m.services[s.Name] = s
		m.apply(c)
	case "delete":
		delete(m.services, rapid.SampledFrom([]string{"shop/a", "shop/b", "media/c"}).Draw(t, "gone"))
		m.apply(c)
	case "hold", "free":
		if m.open[port] {
			return "nothing"
		}
		m.others[port] = what == "hold"
		node.mu.Lock()
		node.others[port] = m.others[port]
		node.mu.Unlock()
	case "break":
		if s := node.socket(port); s != nil {
			_ = s.Close()
		}
		m.open[port] = false
	case "wait":
		time.Sleep(retryMax + time.Second)
		m.look()
	case "sicken":
		node.mu.Lock()
		node.sick = !node.sick
		node.mu.Unlock()
	}
	return fmt.Sprintf("%s %d", what, port)
}

func (m *model) apply(c *Checks) {
	list := []*desired.Service{}
	for _, name := range slices.Sorted(maps.Keys(m.services)) {
		list = append(list, m.services[name])
	}
	c.Apply(list)
	m.look()
}

// compare asks at every port, in both families.
func (m *model) compare(node *machine) string {
	for _, port := range ports {
		for _, ipv4 := range []bool{true, false} {
			response, body, err := node.ask(port, ipv4)
			if !m.open[port] {
				if err == nil {
					return fmt.Sprintf("port %d is open", port)
				}
				continue
			}
			if err != nil {
				return fmt.Sprintf("port %d: %v", port, err)
			}
			s := m.owner(port)
			n, code := ready(s, ipv4), 200
			if n == 0 || !node.healthy() {
				code = 503
			}
			namespace, name, _ := strings.Cut(s.Name, "/")
			for _, want := range []string{fmt.Sprintf("%q: %q", "namespace", namespace), fmt.Sprintf("%q: %q", "name", name), fmt.Sprintf("%q: %d", "localEndpoints", n)} {
				if !strings.Contains(body, want) {
					return fmt.Sprintf("port %d, IPv4 %t: %s lacks %s", port, ipv4, body, want)
				}
			}
			if weight := response.Header.Get("X-Load-Balancing-Endpoint-Weight"); response.StatusCode != code || weight != fmt.Sprint(n) {
				return fmt.Sprintf("port %d, IPv4 %t: status %d, want %d, weight %s, want %d", port, ipv4, response.StatusCode, code, weight, n)
			}
		}
	}
	return ""
}

// K24: whatever Services and other programs do, the ports are open that Services want and nobody else holds, with the counts
// of what they have here; those that another program gave up, or that broke, within the longest pause.
func TestPropertyPortsAreOpenWithTheCountsOfTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		testkit.Check(inBubble{t}, func(t *rapid.T) {
			node := newMachine()
			m := &model{services: map[string]*desired.Service{}, others: map[uint16]bool{}, open: map[uint16]bool{}}
			c, stop, err := run(node, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			for range rapid.IntRange(1, 20).Draw(t, "steps") {
				what := m.step(t, node, c)
				synctest.Wait()
				if why := m.compare(node); why != "" {
					t.Fatalf("after %s: %s", what, why)
				}
			}
			stop()
			for _, port := range ports {
				if node.socket(port) != nil {
					t.Fatalf("port %d is open after the end", port)
				}
			}
		})
	})
}
