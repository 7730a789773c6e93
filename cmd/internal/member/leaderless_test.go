// SPDX-License-Identifier: Apache-2.0

package member

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/internal/config"
)

// A member is ready while its record is that of the group and somebody leads, and for as long as an election takes. Otherwise it says why not, and what helps.
func TestReadinessSaysWhatIsMissing(t *testing.T) {
	now := time.Now()
	away := func() (string, string) { return "nobody leads", "start m2" }
	known := func() (string, string) { return "", "" }
	caughtUp := func(at time.Time) cluster.Contact { return cluster.Contact{At: at, Commit: 7, Applied: 7} }
	for name, c := range map[string]struct {
		contact    cluster.Contact
		leaderless func() (string, string)
		want       string // empty: ready
	}{
		"in-touch":         {caughtUp(now), known, ""},
		"election":         {caughtUp(now.Add(-silentFor)), away, ""},
		"lost":             {caughtUp(now.Add(-silentFor - time.Millisecond)), away, "nobody leads; start m2"},
		"started-alone":    {cluster.Contact{}, away, "nobody leads; start m2"},
		"behind":           {cluster.Contact{At: now, Commit: 9, Applied: 7}, known, "behind: applied 7 of 9"},
		"behind-a-moment":  {cluster.Contact{At: now, AsOf: now.Add(-silentFor), Commit: 9, Applied: 7}, known, ""},
		"disk-hangs":       {cluster.Contact{At: now, Commit: 7, Applied: 7, Writing: silentFor + time.Second}, known, "a write of its log has not come back for " + (silentFor + time.Second).String() + "; look at the disk that has dataDir"},
		"disk-is-slow":     {cluster.Contact{At: now, Commit: 7, Applied: 7, Writing: silentFor}, known, ""},
		"behind-and-alone": {cluster.Contact{At: now, Commit: 9, Applied: 7}, away, "nobody leads; start m2"},
	} {
		t.Run(name, func(t *testing.T) {
			text := ""
			if err := unready(c.contact, c.leaderless, now); err != nil {
				text = err.Error()
			}
			if text != c.want {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}

// What a member knows of why nobody leads: voters alone count, and who was given no token founds nothing.
func TestLeaderlessIsWhatTheMemberKnows(t *testing.T) {
	now := time.Now()
	conf := config.Controller{Name: "m1", Members: []config.Member{{Name: "m1"}, {Name: "m2"}}}
	status := cluster.Status{
		Obstacle: "ask m2: refused", Contact: cluster.Contact{At: now.Add(-3 * time.Second)},
		Peers: []cluster.PeerStatus{{Peer: cluster.Peer{Name: "m1"}, Voter: true}, {Peer: cluster.Peer{Name: "m9"}}},
	}
	want := admin.Leaderless{Member: "m1", Voters: []string{"m1"}, Obstacle: "ask m2: refused", Heard: true, Silence: 3 * time.Second}
	if got := leaderlessOf(&conf, &status, now); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	conf.BootstrapToken = "drawn"
	got := leaderlessOf(&conf, &cluster.Status{}, now)
	if got.Heard || strings.Join(got.Founders, " ") != "m1 m2" || got.Voters != nil {
		t.Errorf("founding: %+v", got)
	}
}
