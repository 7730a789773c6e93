// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

// flood sends frames of a kind until the server has stopped reading once, and whoever waits for it sees so.
func flood(t *testing.T, m *member, config *tls.Config, send func(framer *http2.Framer, n int) error) {
	t.Helper()
	conn, err := tls.Dial("tcp", m.address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	framer := http2.NewFramer(conn, conn)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	n := 0
	testkit.Eventually(t, "a server that stops reading", func() error {
		for range 100 {
			if err := send(framer, n); err != nil {
				t.Fatal(err)
			}
			n++
		}
		if m.counter(t, "fairlead_connections_slowed_total", "api") == 0 {
			return fmt.Errorf("it has taken %d frames", n)
		}
		return nil
	})
}

// settings is a frame of SETTINGS, of which a server takes some 100,000 a second.
func settings(framer *http2.Framer, _ int) error { return framer.WriteSettings() }

// request is one with a header of 15 KiB. What it costs is mostly that, so that a machine on which little is done in a second reaches
// the bound, too.
func request(framer *http2.Framer, n int) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/"}, {"x", strings.Repeat("\\", 5<<10)}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}); err != nil {
			return err
		}
	}
	return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(1 + 2*n), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
}

// Frames that ask for nothing are taken so many a second: of who has a certificate, and fewer of who has none. Others are served meanwhile.
func TestFramesWithoutEndAreReadSlowly(t *testing.T) {
	t.Parallel()
	for _, role := range []pki.Role{pki.Agent, admin.Nobody} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m, name, send := w.member("m1"), "identity=127.0.0.1", settings
			m.endpoint.Enrols = true
			config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "fairlead-enrol"}}
			if role == pki.Agent {
				name, send = "identity=agent/n1", request
				files := w.ca.Issue(t, pki.Request{Role: pki.Agent, Name: "n1"})
				pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
				if err != nil {
					t.Fatal(err)
				}
				config = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair}}
			}
			flood(t, m, config, send)
			if text := m.log.String(); !strings.Contains(text, name) {
				t.Errorf("the log does not say who: %s", text)
			}
			if _, err := w.client(pki.Viewer, "v", "m1").Raft.Status(w.ctx(), &fairleadv1.StatusRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Nobody who works as he should is read slowly: not a person with one call after the other, nor the member that hands them on.
func TestCallsOneAfterTheOtherAreNotSlowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.client(pki.Viewer, "v", "m2")
	for range 500 {
		if _, err := client.Raft.Status(w.ctx(), &fairleadv1.StatusRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []string{"m1", "m2"} {
		if n := w.member(m).counter(t, "fairlead_connections_slowed_total", "api"); n != 0 {
			t.Errorf("%s stopped reading %v times", m, n)
		}
	}
}
