// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/internal/testkit"
)

// slowed is how often the port for admission stopped reading.
func slowed(counts *prometheus.Registry) (n float64, err error) {
	families, err := counts.Gather()
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "fairlead_connections_slowed_total" && m.GetLabel()[0].GetValue() == "admission" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n, err
}

// Whoever sends the port for admission frames of HTTP/2 that ask for nothing, or requests of HTTP/1.1 one behind the other without an end, is
// read slowly, and the API server is answered meanwhile.
func TestFramesWithoutEndAtAdmissionAreReadSlowly(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1"} {
		t.Run(strings.TrimPrefix(protocol, "http/"), func(t *testing.T) {
			counts := prometheus.NewRegistry()
			at, client := servedCounting(t, counts, config.Admission{}, nil)
			conn, err := tls.Dial("tcp", strings.TrimPrefix(at, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			send := func() error {
				_, err := io.WriteString(conn, strings.Repeat("GET /no HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 4<<10)+"\r\n\r\n", 10))
				return err
			}
			if protocol == "h2" {
				var many bytes.Buffer
				framer := http2.NewFramer(&many, nil)
				for range 100 {
					if err := framer.WriteSettings(); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
					t.Fatal(err)
				}
				send = func() error { _, err := conn.Write(many.Bytes()); return err }
			}
			testkit.Eventually(t, "a server that stops reading", func() error {
				for range 100 {
					if err := send(); err != nil {
						t.Fatal(err)
					}
				}
				if n, err := slowed(counts); n == 0 {
					return fmt.Errorf("it reads on: %v", err)
				}
				return nil
			})
			response, err := client.Get(at + "/no")
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusNotFound {
				t.Errorf("the API server is answered %s", response.Status)
			}
		})
	}
}
