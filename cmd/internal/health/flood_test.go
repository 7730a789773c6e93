// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/testkit"
)

// slowed is how often the port stopped reading.
func slowed(t *testing.T, counts *prometheus.Registry) (n float64) {
	t.Helper()
	families, err := counts.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "fairlead_connections_slowed_total" {
			for _, m := range family.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// Whoever asks without waiting for answers, one request right behind the other, is read slowly; others at other addresses are answered.
func TestRequestsWithoutEndAreReadSlowly(t *testing.T) {
	address, counts := served(t)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}
	conn, err := d.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	testkit.Eventually(t, "a server that stops reading", func() error {
		if _, err := io.WriteString(conn, strings.Repeat("GET /livez HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 4<<10)+"\r\n\r\n", 100)); err != nil {
			t.Fatal(err)
		}
		if n := slowed(t, counts); n == 0 {
			return fmt.Errorf("it reads on")
		}
		return nil
	})
	response, err := http.Get("http://" + address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("others are answered %s", response.Status)
	}
}

// Nobody who asks as probes do is read slowly.
func TestProbesAreNotSlowed(t *testing.T) {
	address, counts := served(t)
	for range 200 {
		response, err := http.Get("http://" + address + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if n := slowed(t, counts); n > 0 {
		t.Errorf("the port stopped reading %v times", n)
	}
}
