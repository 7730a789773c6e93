// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

func example(t interface{ Fatal(...any) }) []byte {
	text, err := os.ReadFile("testdata/config_bgp.toml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFileOfTheEarlierControllerIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	c, err := Parse("config_bgp.toml", example(t))
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr
	if want := (Global{ASN: 65000, RouterID: addr("192.0.2.5"), ListenPort: 1790, PortForward: true}); !reflect.DeepEqual(c.Global, want) {
		t.Errorf("global is %+v, want %+v", c.Global, want)
	}
	want := []bgp.Peer{{
		Address: addr("192.0.2.4"), RemoteASN: 65001, SendMax: 10, Families: []bgp.Family{bgp.IPv4},
		Restart: bgp.GracefulRestart{RestartTime: 120 * time.Second},
	}, {
		Name: "rack 2", Address: addr("2001:db8::4"), RemoteASN: 65001, Password: "hunter2", EBGPMultihop: 3,
		HoldTime: 9 * time.Second, Keepalive: 3 * time.Second, ConnectRetry: 5 * time.Second,
		Passive: true, Port: 1179, Families: []bgp.Family{bgp.IPv6},
		Restart: bgp.GracefulRestart{StaleTime: 900 * time.Second},
	}}
	if !reflect.DeepEqual(c.Peers, want) {
		t.Errorf("peers are\n%+v\nwant\n%+v", c.Peers, want)
	}
	var warnings []string
	for _, w := range c.Warnings {
		warnings = append(warnings, w.String())
		if w.Remedy == "" {
			t.Errorf("no remedy: %s", w)
		}
	}
	wantWarnings := []string{
		"config_bgp.toml:19: neighbors[0].graceful-restart.config.restart-time: the switch keeps sending traffic to the paths",
		"config_bgp.toml:35: neighbors[1].config.route-flap-damping: not known here, ignored",
		"config_bgp.toml:46: neighbors[1].transport.config.local-address: not used",
		"config_bgp.toml:58: neighbors[2].config.admin-down: the neighbour is switched off and left out",
		"config_bgp.toml:60: zebra: not known here, ignored",
	}
	for i, w := range wantWarnings {
		if i >= len(warnings) || !strings.HasPrefix(warnings[i], w) {
			t.Errorf("warnings are\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(wantWarnings, "\n"))
			break
		}
	}
	if len(warnings) != len(wantWarnings) {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

func TestSmallestFileGetsTheDefaults(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte("[global.config]\nas = 65000\n[[neighbors]]\n[neighbors.config]\nneighbor-address=\"192.0.2.4\"\npeer-as=65001\n"))
	if err != nil || len(c.Warnings) > 0 {
		t.Fatal(err, c.Warnings)
	}
	p := c.Peers[0].Normal(c.Global.ASN)
	if c.Global.ListenPort != 179 || p.HoldTime != 30*time.Second || p.Keepalive != 10*time.Second || p.SendMax != 64 ||
		p.Restart.Mode != bgp.RestartLongLived || p.Restart.RestartTime != time.Second {
		t.Errorf("global %+v, peer %+v", c.Global, p)
	}
	for port, want := range map[string]uint16{"-1": 0, "0": 179, "1790": 1790} {
		c, err := Parse("f", []byte("[global.config]\nas = 65000\nport = "+port))
		if err != nil || c.Global.ListenPort != want {
			t.Errorf("port %s: listens at %d, %v", port, c.Global.ListenPort, err)
		}
	}
}

// One file serves all members: what is right for one of them at most is told, and neither used nor a reason to refuse the file.
func TestSettingsOfASingleSpeakerAreTold(t *testing.T) {
	t.Parallel()
	const neighbor = "[global.config]\nas = 65000\n[[neighbors]]\n[neighbors.config]\nneighbor-address = \"192.0.2.4\"\npeer-as = 65001\n"
	for text, want := range map[string]string{
		"[neighbors.transport.config]\nlocal-address = \"192.0.2.5\"":            "f:8: neighbors[0].transport.config.local-address: not used, since all members read this file (set bgp.localAddress in a member's controller.yaml)",
		"[neighbors.transport.config]\nlocal-address = \"192.0.2.4\"":            "f:8: neighbors[0].transport.config.local-address: not used",
		"[neighbors.transport.config]\nlocal-address = \"2001:db8::5\"":          "f:8: neighbors[0].transport.config.local-address: not used",
		"[neighbors.transport.config]\nlocal-address = \"0.0.0.0\"":              "",
		"[neighbors.transport.config]\nlocal-address = \"::\"":                   "",
		"[neighbors.graceful-restart.config]\nenabled=true\ndeferral-time = 360": "f:9: neighbors[0].graceful-restart.config.deferral-time: not used: a member that returns waits 2s",
	} {
		c, err := Parse("f", []byte(neighbor+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var told string
		for _, w := range c.Warnings {
			told += w.String()
		}
		if !strings.HasPrefix(told, want) || (told == "") != (want == "") {
			t.Errorf("%s: told is %q", text, told)
		}
		if p := c.Peers[0]; p.LocalAddress.IsValid() || p.Restart.Deferral != 0 {
			t.Errorf("%s: taken as %+v", text, p)
		}
	}
}

func TestErrorNamesFileLineFieldReasonAndRemedy(t *testing.T) {
	t.Parallel()
	const global = "[global.config]\nas = 65000\n"
	const neighbor = global + "[[neighbors]]\n[neighbors.config]\nneighbor-address = \"192.0.2.4\"\npeer-as = 65001\n"
	for text, want := range map[string]string{
		"":                            "f:1: global.config.as: is missing (add as to [global.config])",
		"[global.config]\nas = = 1\n": "f:2: ",
		"[global.config]\nas = 65000\nas = 65001\n":               "f:3: ",
		"[global.config]\nas = 4294967296\n":                      "f:2: global.config.as: 4294967296 does not fit (write a whole number from 1 to 4294967295)",
		"[global.config]\nas = \"x\"\n":                           `f:2: global.config.as: "x" does not fit (write a whole number from 1 to 4294967295)`,
		"global = 3\n":                                            "f:1: global: is no table (write [global])",
		global + "port = 65536\n":                                 "f:3: global.config.port: 65536 does not fit (write a whole number from -1 to 65535)",
		global + "router-id = \"2001:db8::1\"\n":                  "f:3: global.config.router-id: 2001:db8::1 is no IPv4 address (a router id",
		global + "[neighbors]\n":                                  "f:3: neighbors: is no array of tables (write [[neighbors]])",
		global + "[[neighbors]]\n":                                "f:3: neighbors[0].config.neighbor-address: is missing",
		neighbor + "local-as = true\n":                            "f:7: neighbors[0].config.local-as: true does not fit",
		neighbor + "auth-password = 12345\n":                      "f:7: neighbors[0].config.auth-password: is no text (put it in quotes)",
		neighbor + "[neighbors.add-paths.config]\nsend-max = 256": "f:8: neighbors[0].add-paths.config.send-max: 256 does not fit (write a whole number from 0 to 255)",
		neighbor + "[neighbors.timers.config]\nhold-time = 9.5":   "f:8: neighbors[0].timers.config.hold-time: 9.5 does not fit",
		neighbor + "[neighbors.timers.config]\nhold-time = 2":     "f:5: neighbors[0].config.neighbor-address: peer 192.0.2.4: invalid: hold time 2s",
		neighbor + "[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = \"l2vpn-evpn\"": `f:9: neighbors[0].afi-safis[0].config.afi-safi-name: "l2vpn-evpn" is not announced here (use ipv4-unicast or ipv6-unicast)`,
		neighbor + "[[neighbors]]\n[neighbors.config]\nneighbor-address = \"192.0.2.4\"\npeer-as = 1":      "f:9: neighbors[1].config.neighbor-address: 192.0.2.4 is given twice (keep one of the neighbours)",
	} {
		c, err := Parse("f", []byte(text))
		if err == nil {
			err = c.Whole()
		}
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) || e.Reason == "" || e.Remedy == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q\n gives %v\n want  %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "12345") {
			t.Errorf("a password is shown: %v", err)
		}
	}
}

// A neighbour that cannot be used costs no other one: whichever are spoilt, by whatever of them, the others are read as they are alone, and each of
// those is told of with its line.
func TestPropertyANeighbourThatCannotBeUsedCostsNoOther(t *testing.T) {
	spoilt := []string{"", "peer-as = \"x\"", "peer-as = 65001\nlocal-as = true", "peer-as = 65001\nauth-password = 7", "peer-group = \"tor\""}
	testkit.Check(t, func(t *rapid.T) {
		text := "[global.config]\nas = 65000\n"
		var want, told []string
		for i := range rapid.IntRange(0, 6).Draw(t, "neighbours") {
			address := fmt.Sprintf("192.0.2.%d", i+1)
			body := "peer-as = 65001"
			if rapid.Bool().Draw(t, "spoilt") {
				body = rapid.SampledFrom(spoilt).Draw(t, "how")
				told = append(told, fmt.Sprintf("%s f:%d", address, 1+strings.Count(text, "\n")))
			} else {
				want = append(want, address)
			}
			text += fmt.Sprintf("[[neighbors]]\n[neighbors.config]\nneighbor-address = %q\n%s\n", address, body)
		}
		c, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var peers []string
		for _, p := range c.Peers {
			peers = append(peers, p.Address.String())
		}
		if fmt.Sprint(peers) != fmt.Sprint(want) || len(c.Faults) != len(told) || (c.Whole() == nil) != (len(told) == 0) {
			t.Fatalf("used %v, want %v; told %v, want %v", peers, want, c.Faults, told)
		}
		for i, f := range c.Faults { // a neighbour has five lines
			address, first, _ := strings.Cut(told[i], " f:")
			from, _ := strconv.Atoi(first)
			if f.Address.String() != address || f.Err.Line < from || f.Err.Line > from+4 {
				t.Fatalf("%s, from line %d on, is told of as %s: %v", address, from, f.Address, f.Err)
			}
		}
	})
}

// Whatever is done to a file, it is read or refused with a line of the file.
func TestPropertyDamagedFileIsReadOrRefused(t *testing.T) {
	text := string(example(t))
	lines := strings.Split(text, "\n")
	testkit.Check(t, func(t *rapid.T) {
		out := append([]string(nil), lines...)
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			i := rapid.IntRange(0, len(out)-1).Draw(t, "line")
			switch rapid.SampledFrom([]string{"drop", "double", "value", "cut", "swap"}).Draw(t, "change") {
			case "drop":
				out[i] = ""
			case "double":
				out[i] += "\n" + out[i]
			case "value":
				key, _, _ := strings.Cut(out[i], "=")
				out[i] = key + "=" + rapid.SampledFrom([]string{"-3", `"x"`, "[]", "{}", "[1, {a=2}]", "true", "1e300", "2020-01-01", "nan"}).Draw(t, "value")
			case "cut":
				out[i] = out[i][:rapid.IntRange(0, len(out[i])).Draw(t, "at")]
			case "swap":
				j := rapid.IntRange(0, len(out)-1).Draw(t, "other line")
				out[i], out[j] = out[j], out[i]
			}
		}
		changed := strings.Join(out, "\n")
		c, err := Parse("f", []byte(changed))
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Line > strings.Count(changed, "\n")+2 || strings.Contains(fmt.Sprint(err), "hunter2")) {
			t.Fatalf("refused with %v", err)
		}
		if err == nil {
			addresses := map[netip.Addr]bool{}
			for _, p := range c.Peers {
				if err := p.Validate(c.Global.ASN); err != nil || addresses[p.Address] {
					t.Fatal(p.Address, err)
				}
				addresses[p.Address] = true
			}
			for _, f := range c.Faults {
				if f.Err == nil || f.Err.Line < 1 || f.Err.Reason == "" || strings.Contains(f.Err.Error(), "hunter2") {
					t.Fatalf("told of as %v", f.Err)
				}
			}
		}
	})
}
