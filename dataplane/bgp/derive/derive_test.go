// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
)

// What the old configuration says of a neighbour is what members do, except for what its warnings name.
func TestRecordLosesNothingOfTheOldConfiguration(t *testing.T) {
	text, err := os.ReadFile("../legacy/testdata/config_bgp.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := legacy.Parse("config_bgp.toml", text)
	if err != nil || len(c.Peers) < 2 {
		t.Fatal(c.Peers, err)
	}
	for _, want := range c.Peers {
		record := Record(want, "somewhere")
		have := peerOf(&record)
		want.Password = "" // the record has none
		if !have.Normal(64512).Equal(want.Normal(64512)) {
			t.Errorf("have %+v\nwant %+v", have, want)
		}
	}
}

// Whatever is asked of a switch for while a speaker is away, the record keeps: long-lived restart too, beside a restart time (config_bgp.toml often has
// restart-time = 120).
func TestRecordKeepsHowPeersRestart(t *testing.T) {
	for _, want := range []bgp.GracefulRestart{
		{}, {RestartTime: 2 * time.Minute}, {RestartTime: 2 * time.Minute, StaleTime: time.Hour}, {StaleTime: time.Hour},
		{Mode: bgp.RestartPlain, RestartTime: 2 * time.Minute}, {Mode: bgp.RestartNone}, {RestartTime: 2 * time.Minute, Notification: true},
	} {
		peer := bgp.Peer{Name: "tor", Address: netip.MustParseAddr("192.0.2.1"), RemoteASN: 64513, Restart: want}
		record := Record(peer, "")
		if have := peerOf(&record); !have.Normal(64512).Equal(peer.Normal(64512)) {
			t.Errorf("have %+v, want %+v", have.Restart, want)
		}
	}
}
