// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// everything reads back all that a speaker announces.
func (s *Speaker) everything(ctx context.Context) (bgp.Observed, error) {
	_, out, err := s.compare(ctx, bgp.Paths{})
	return out, err
}

// What GoBGP shows of a peer is what it was given, whatever the settings, before there is a session.
func TestPropertyPeersAreReadBackAsTheyWereAdded(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	times := func(t *rapid.T, what string, from int) time.Duration {
		return time.Duration(rapid.IntRange(from, 300).Draw(t, what)) * time.Second
	}
	gen := rapid.Custom(func(t *rapid.T) bgp.Peer {
		p := bgp.Peer{
			// Reserved for documentation: nobody answers.
			Address:      addr(rapid.SampledFrom([]string{"192.0.2.101", "192.0.2.102", "2001:db8::101"}).Draw(t, "address")),
			Port:         rapid.SampledFrom([]uint16{0, 1790}).Draw(t, "port"),
			RemoteASN:    rapid.SampledFrom([]uint32{65000, 65001, 4200000000}).Draw(t, "asn"),
			LocalASN:     rapid.SampledFrom([]uint32{0, 64999}).Draw(t, "local asn"),
			Passive:      rapid.Bool().Draw(t, "passive"),
			Families:     rapid.SampledFrom([][]bgp.Family{nil, {4}, {6}, {6, 4}}).Draw(t, "families"),
			SendMax:      rapid.Uint8().Draw(t, "send max"),
			ConnectRetry: times(t, "retry", 1),
			Password:     bgp.Secret(rapid.SampledFrom([]string{"", "x"}).Draw(t, "password")),
			Demoted:      rapid.Bool().Draw(t, "demoted"),
		}
		p.HoldTime = times(t, "hold", 3)
		p.Keepalive = min(times(t, "keepalive", 1), p.HoldTime)
		if rapid.Bool().Draw(t, "local address") {
			p.LocalAddress = addr(map[bool]string{true: "192.0.2.5", false: "2001:db8::5"}[p.Address.Is4()])
		}
		if p.Normal(65000).LocalASN != p.RemoteASN {
			p.EBGPMultihop = rapid.Uint8().Draw(t, "multihop")
		}
		if p.EBGPMultihop == 0 {
			p.TTLSecurity = rapid.Uint8().Draw(t, "hops")
		}
		p.Restart.Mode = rapid.SampledFrom([]bgp.RestartMode{bgp.RestartLongLived, bgp.RestartPlain, bgp.RestartNone}).Draw(t, "mode")
		p.Restart.RestartTime, p.Restart.StaleTime = times(t, "restart", 0), times(t, "stale", 0)
		p.Restart.Deferral = times(t, "deferral", 0)
		p.Restart.Notification = rapid.Bool().Draw(t, "notification")
		return p
	})
	testkit.Check(t, func(rt *rapid.T) {
		peers := rapid.SliceOfNDistinct(gen, 0, 3, func(p bgp.Peer) netip.Addr { return p.Address }).Draw(rt, "peers")
		d := bgp.Desired{Peers: peers}
		if err := s.Apply(t.Context(), d); err != nil {
			rt.Fatal(err)
		}
		o, err := s.everything(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		if steps, err := bgp.Plan(65000, d, o); len(steps) > 0 || err != nil {
			rt.Fatalf("what is there is %+v; it would %v, %v", o, steps, err)
		}
	})
}

func TestApplyRepairsWhatIsNotThere(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	d := bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1), path(vip, hop2), path(vip6, "2001:db8::1"))}
	if err := s.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	want, err := s.everything(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost, err := encodePath(want.Paths[0], 65000)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.server.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{lost}}); err != nil {
		t.Fatal(err)
	}
	strange, err := encodePath(bgp.AssignPathIDs([]bgp.Path{path("203.0.113.99/32", hop1)})[0], 65000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.server.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{strange}}); err != nil {
		t.Fatal(err)
	}
	s.told.again = time.Time{}
	if err := s.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got, err := s.everything(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("there is %v, %v, want %v", got, err, want)
	}
}

func TestInvalidPathsKeepNothingElseBack(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	bad := path(vip, "2001:db8::1")
	for range 2 { // told again, the fault is shown again
		err := s.Apply(t.Context(), bgp.Desired{Paths: bgp.NewPaths(bad, path(vip, hop1))})
		if !errors.Is(err, bgp.ErrInvalid) {
			t.Fatalf("error is %v", err)
		}
		if o, err := s.everything(t.Context()); err != nil || len(o.Paths) != 1 || o.Paths[0].NextHop != addr(hop1) {
			t.Errorf("there is %v, %v", o, err)
		}
	}
}

func TestSwitchWithoutAddPathGetsTheBestPath(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 1, birdtest.Config{NoAddPath: true})
	worse := path(vip, hop2)
	worse.MED = 5
	d := bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}, Paths: bgp.NewPaths(path(vip, hop1), worse)}
	apply(t, sp[0], d)
	bird.WaitNextHops(prefix(vip), addr(hop1))
	d.Paths = bgp.NewPaths(worse)
	apply(t, sp[0], d)
	bird.WaitNextHops(prefix(vip), addr(hop2))
	d.Demoted = true
	apply(t, sp[0], d)
	bird.Wait("demotion", func() bool { return bird.Routes()[0].MED == bgp.DemotionMED+5 })
	if st, err := sp[0].Peers(t.Context()); err != nil || len(st[0].AddPath) != 0 || !st[0].LongLived || st[0].Announced != 1 {
		t.Errorf("status %+v, %v", st, err)
	}
}

// A switch that knows one family only is not troubled by the other, and one without graceful restart by restarts.
func TestSwitchWithFewerCapabilitiesIsServed(t *testing.T) {
	parallel(t)
	bird, self, sp := startWithBird(t, 1, birdtest.Config{NoIPv6: true, NoRestart: true})
	d := bgp.Desired{Peers: []bgp.Peer{self[0].peer(bird)}, Paths: bgp.NewPaths(path(vip, hop1), path(vip6, "2001:db8::1"))}
	apply(t, sp[0], d)
	bird.WaitNextHops(prefix(vip), addr(hop1))
	opened := bird.Sessions()["s1"].Opened
	other := path(vip6, "2001:db8::1")
	other.MED = 5
	d.Paths = bgp.NewPaths(path(vip, hop1), other, path(vip, hop2))
	apply(t, sp[0], d)
	bird.WaitNextHops(prefix(vip), addr(hop1), addr(hop2))
	if now := bird.Sessions()["s1"].Opened; now != opened {
		t.Errorf("the session bounced: opened %d times, before %d:\n%s", now, opened, bird.Log())
	}
	st, err := sp[0].Peers(t.Context())
	if err != nil || st[0].LongLived || !st[0].Established || !slices.Equal(st[0].AddPath, []bgp.Family{bgp.IPv4}) {
		t.Errorf("status %+v, %v", st, err)
	}
	if out, err := sp[0].AdjOut(t.Context(), bird.Address()); err != nil || len(out) != 2 {
		t.Errorf("sent %v, %v", out, err)
	}
}

func TestPasswordComesChangesAndGoes(t *testing.T) {
	if !md5Works() {
		t.Skip("this kernel cannot sign TCP")
	}
	parallel(t)
	self := newSelf(t, 1)
	conf := birdtest.Config{Neighbors: []birdtest.Neighbor{self.neighbor()}}
	conf.Neighbors[0].Password = "first"
	bird := birdtest.Start(t, conf)
	sp := self.start(t)
	d := bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1))}
	for _, password := range []string{"first", "second", "", "third", "removed", ""} {
		before := bird.Sessions()["s1"].Opened
		if password == "removed" { // and added again, without one
			apply(t, sp, bgp.Desired{Paths: d.Paths})
			continue
		}
		conf.Neighbors[0].Password = password
		bird.Configure(conf)
		peer := self.peer(bird)
		peer.Passive = true // the key of our listener is what goes wrong easily
		peer.Password = bgp.Secret(password)
		d.Peers = []bgp.Peer{peer}
		apply(t, sp, d)
		bird.Wait(fmt.Sprintf("a session with password %q", password), func() bool {
			s := bird.Sessions()["s1"]
			return s.Established && s.Opened != before && len(bird.NextHops(prefix(vip))) == 1
		})
	}
}

func TestLostUpdatesAreReportedAndSentAgain(t *testing.T) {
	parallel(t)
	sw := startSwitch(t, 1)
	s := dialler(t, 0)
	apply(t, s, bgp.Desired{Peers: []bgp.Peer{switchPeer(sw)}, Paths: bgp.NewPaths(path(vip, hop1))})
	testkit.Until(t, "the table", func() bool { return len(sw.RIB()) == 1 })
	before := sw.Peers()[0].Updates
	slog.New(handler{logger: s.logger}).Warn(serializeFailed) // as GoBGP does
	if ok, err := s.Written(t.Context()); ok || !errors.Is(err, bgp.ErrDropped) {
		t.Errorf("written %t, %v", ok, err)
	}
	testkit.Until(t, "the paths again", func() bool { return sw.Peers()[0].Updates > before })
	testkit.Until(t, "success", func() bool { ok, err := s.Written(t.Context()); return ok && err == nil })
}

func TestStoppedSpeakerSaysSo(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	if err := s.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, written := s.Written(t.Context())
	_, peers := s.Peers(t.Context())
	for _, err := range []error{s.Apply(t.Context(), bgp.Desired{}), written, peers, s.Detach(t.Context()), s.Drain(t.Context())} {
		if !errors.Is(err, bgp.ErrStopped) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestSpeakerThatCannotStartSaysWhy(t *testing.T) {
	parallel(t)
	first := newSelf(t, 9)
	first.start(t)
	good := Config{ASN: 65000, RouterID: addr("192.0.2.1"), Logger: testLogger(t, "speaker")}
	for want, change := range map[string]func(*Config){
		"no AS number":                        func(c *Config) { c.ASN = 0 },
		`router id "2001:db8::1": must be`:    func(c *Config) { c.RouterID = addr("2001:db8::1") },
		"address already in use (end the oth": func(c *Config) { c.ListenPort, c.ListenAddrs = first.port, []netip.Addr{first.addr} },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

// What a switch announces to us, our own prefixes included, changes nothing that we announce, and goes nowhere.
func TestWhatPeersAnnounceIsIgnored(t *testing.T) {
	parallel(t)
	s := newSelf(t, 1)
	loud := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{s.neighbor()}, Export: "all", Extra: `
		protocol static {
			ipv4;
			route 203.0.113.128/25 blackhole;
			route ` + vip + ` blackhole;
		}
	`})
	quiet := birdtest.Start(t, birdtest.Config{
		Address: addr("127.0.0.2"), ASN: 65002, Neighbors: []birdtest.Neighbor{s.neighbor()},
	})
	sp := s.start(t)
	d := bgp.Desired{Peers: []bgp.Peer{s.peer(loud), s.peer(quiet)}, Paths: bgp.NewPaths(path(vip, hop1))}
	apply(t, sp, d)
	quiet.WaitNextHops(prefix(vip), addr(hop1))
	testkit.Until(t, "two routes of the switch to be refused", func() bool {
		st, err := sp.Peers(t.Context())
		return err == nil && st[0].Refused >= 2
	})
	d.Paths = bgp.NewPaths(append(slices.Collect(d.Paths.All()), path("203.0.113.11/32", hop1))...)
	apply(t, sp, d)
	quiet.WaitNextHops(prefix("203.0.113.11/32"), addr(hop1))
	if r := quiet.Routes(); len(r) != 2 {
		t.Errorf("the other switch has %+v", r)
	}
	o, err := sp.everything(t.Context())
	if err != nil || len(o.Paths) != 2 {
		t.Errorf("there is %v, %v", o.Paths, err)
	}
}

// A switch that drops packets from further away than two hops talks to a speaker that sends with the greatest TTL, and not
// to one that sends as for a neighbour on the link.
func TestTTLSecurityOpensASessionThatAsksForIt(t *testing.T) {
	parallel(t)
	s := newSelf(t, 1)
	n := s.neighbor()
	n.TTLSecurity = true
	bird := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{n}})
	sp := s.start(t)
	p := s.peer(bird)
	p.TTLSecurity = 2
	d := bgp.Desired{Peers: []bgp.Peer{p}, Paths: bgp.NewPaths(path(vip, hop1))}
	apply(t, sp, d)
	bird.WaitNextHops(prefix(vip), addr(hop1))
	if steps, err := bgp.Plan(65000, d, mustObserve(t, sp)); len(steps) > 0 || err != nil {
		t.Errorf("it would %v, %v", steps, err)
	}
}

func mustObserve(t *testing.T, s *Speaker) bgp.Observed {
	t.Helper()
	o, err := s.everything(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// GoBGP's names for paths, which nobody uses, do not stay; the paths do.
func TestNamesOfPathsAreForgotten(t *testing.T) {
	s, err := New(Config{ASN: 65000, RouterID: addr("192.0.2.1"), Logger: testLogger(t, "speaker")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drain(t.Context())
	apply(t, s, bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1), path(vip, hop2), path(vip6, "2001:db8::1"))})
	if names := reflect.ValueOf(s.server).Elem().FieldByName("uuidMap").Len(); names != 0 {
		t.Errorf("%d names are there", names)
	}
	if o, err := s.everything(t.Context()); err != nil || len(o.Paths) != 3 {
		t.Errorf("%v, %v", o.Paths, err)
	}
}

// Reading a large table back is put off: it takes one part in 200 of the time, and is never put off for more than ten minutes.
func TestLookAtEverythingIsPutOffByWhatItTook(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: fullEvery, time.Second: 200 * time.Second, time.Hour: 10 * time.Minute} {
		var s told
		if s.changed(bgp.Desired{}) != nil {
			t.Fatal("nothing was told, and not everything is looked at")
		}
		began := time.Now()
		s.looked(took)
		if ended := time.Now(); s.again.Before(began.Add(want)) || s.again.After(ended.Add(want)) {
			t.Errorf("after a look of %s between %s and %s the next one is at %s, want it %s later", took, began, ended, s.again, want)
		}
		if s.note(bgp.Paths{}, true); s.changed(bgp.Desired{}) == nil {
			t.Error("everything is looked at again at once")
		}
		if s.note(bgp.Paths{}, false); s.changed(bgp.Desired{}) != nil {
			t.Error("what is invalid is not told again")
		}
	}
}

// What to do where a port cannot be listened at is named by the fields of the configuration, and fits the reason.
func TestWhatToDoWithoutThePortIsSaid(t *testing.T) {
	for want, err := range map[string]error{"CAP_NET_BIND_SERVICE": fmt.Errorf("listen: %w", syscall.EACCES), "end the other program": fmt.Errorf("listen: %w", syscall.EADDRINUSE), "bgp.listen": syscall.EADDRNOTAVAIL} {
		if got := listenRemedy(err); !strings.Contains(got, want) || !strings.Contains(got, "bgp.port") || !strings.Contains(got, "-1") {
			t.Errorf("%v: %s", err, got)
		}
	}
}
