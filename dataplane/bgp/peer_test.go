// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestPasswordShowsItselfToNobody(t *testing.T) {
	p := Peer{Name: "tor1", Address: netip.MustParseAddr("192.0.2.101"), Password: "hunter2"}
	var out bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(h).Info("peer", "peer", p, "password", p.Password, "peers", []Peer{p}, "pointer", &p)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	fmt.Fprintf(&out, "%v %+v %#v %s %q", p, p, p, p.Password, p.Password)
	if s := out.String(); strings.Contains(s, "hunter") || !strings.Contains(s, "***") {
		t.Errorf("shown: %s", s)
	}
}

func TestPeerWithoutSettingsGetsTheMeasuredOnes(t *testing.T) {
	p := Peer{Address: netip.MustParseAddr("2001:db8::101"), RemoteASN: 65001}.Normal(asn)
	if p.fault() != "" {
		t.Fatal(p.fault())
	}
	if p.Restart != (GracefulRestart{RestartTime: time.Second, StaleTime: 600 * time.Second, Deferral: 2 * time.Second}) {
		t.Errorf("restart: %+v", p.Restart)
	}
	if p.HoldTime != 30*time.Second || p.Keepalive != 10*time.Second || p.SendMax != 64 || p.Port != 179 ||
		p.LocalASN != asn || len(p.Families) != 1 || p.Families[0] != IPv6 || p.Passive {
		t.Errorf("peer: %+v", p)
	}
}
