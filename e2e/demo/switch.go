// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
)

// border is the switch between clients and nodes: BIRD decides, the kernel forwards.
type border struct {
	bird   *sandbox.Process
	routes *sandbox.Process
	socket string
}

// birdConfig is the soft switch of the old system's documents, with paths that outlive their speaker.
const birdConfig = `log %q all;
router id %s;
timeformat protocol iso long ms;
graceful restart wait 30;
protocol device { scan time 10; }
protocol direct { ipv4; }
protocol kernel {
  persist;
  graceful restart on;   # after a restart: leave the kernel's routes until the speakers are back
  scan time 20;
  merge paths on limit 64;
  ipv4 { import none; export where source = RTS_BGP; };
}
template bgp speaker {
  local %s as %d;
  hold time %d; keepalive time %d;
  connect delay time 1; connect retry time 1; error wait time 1,2;
  graceful restart on;
  passive on;
  ipv4 { add paths rx; import where net ~ [ 203.0.113.0/24{32,32} ]; export none; };
}
`

// flowTable has the switch keep each flow on the next hop that ECMP chose for its first packet, as switches with a flow
// table or resilient hashing do. Without it every change of next hops moves some flows to a node that does not know them.
const flowTable = `table ip flows {
	chain in {
		type filter hook prerouting priority mangle;
		iifname "clients" ct mark != 0 meta mark set ct mark
	}
	chain out {
		type filter hook postrouting priority mangle;
		oifname "%s" ct state new ct mark set rt ip nexthop map { %s }
	}
}
`

// remembersFlows installs the flow table.
func remembersFlows() error {
	var hops, lines []string
	for n := 1; n <= nodeCount; n++ {
		hops = append(hops, fmt.Sprintf("%s : %d", nodeAddress(n), n))
		lines = append(lines, fmt.Sprintf("rule add fwmark %d lookup %d", n, firstFlowTable+n),
			fmt.Sprintf("route add default via %s dev %s table %d", nodeAddress(n), lan, firstFlowTable+n))
	}
	if err := switchNet.IP(lines...); err != nil {
		return err
	}
	if _, err := switchNet.Run(fmt.Sprintf(flowTable, lan, strings.Join(hops, ", ")), "nft", "-f", "-"); err != nil {
		return err
	}
	// Two thousand short flows a second: what is over must not be remembered for minutes.
	return switchNet.Sysctl("net.netfilter.nf_conntrack_tcp_timeout_time_wait=5",
		"net.netfilter.nf_conntrack_tcp_timeout_last_ack=5", "net.netfilter.nf_conntrack_tcp_timeout_close_wait=5",
		"net.netfilter.nf_conntrack_tcp_timeout_syn_sent=5", "net.netfilter.nf_conntrack_tcp_timeout_fin_wait=5")
}

// firstFlowTable is the routing table before those of the flow table, one for each node.
const firstFlowTable = 1000

// newBorder makes the networks of switch and clients, and starts BIRD.
func newBorder(ctx context.Context, o Options) (*border, error) {
	for _, n := range []sandbox.Namespace{switchNet, clientNet} {
		if err := n.Make(); err != nil {
			return nil, err
		}
	}
	if err := switchNet.Sysctl("net.ipv4.ip_forward=1", "net.ipv4.fib_multipath_hash_policy=1",
		"net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"); err != nil {
		return nil, err
	}
	lines := append(bridge(lan, switchAddress),
		"link add clients type veth peer name eth0 netns "+string(clientNet),
		fmt.Sprintf("address add %s/24 dev clients", clientGateway), "link set clients up",
	)
	if err := switchNet.IP(lines...); err != nil {
		return nil, err
	}
	lines = []string{"link set eth0 up"}
	for c := range clientCount {
		lines = append(lines, fmt.Sprintf("address add %s/24 dev eth0", clientAddress(c)))
	}
	lines = append(lines, fmt.Sprintf("route add default via %s", clientGateway))
	if err := clientNet.IP(lines...); err != nil {
		return nil, err
	}
	if !o.Stateless {
		if err := remembersFlows(); err != nil {
			return nil, err
		}
	}
	b := &border{socket: filepath.Join(o.Dir, "bird.ctl")}
	var conf strings.Builder
	fmt.Fprintf(&conf, birdConfig, filepath.Join(o.Logs, "bird.log"), clientGateway, switchAddress, switchASN,
		o.timers().hold, o.timers().keepalive)
	for m := 1; m <= memberCount; m++ {
		fmt.Fprintf(&conf, "protocol bgp m%d from speaker { neighbor %s as %d; }\n", m, memberAddress(m), memberASN)
	}
	file := filepath.Join(o.Dir, "bird.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o644); err != nil {
		return nil, err
	}
	b.bird = &sandbox.Process{
		Name: "bird", Network: switchNet, Log: filepath.Join(o.Logs, "bird.out"),
		Argv: []string{"bird", "-f", "-c", file, "-s", b.socket, "-P", filepath.Join(o.Dir, "bird.pid")},
	}
	if err := b.starts(ctx); err != nil {
		return nil, err
	}
	// What the kernel of the switch was told, and when: the first thing to look at when requests failed.
	b.routes = &sandbox.Process{
		Name: "ip monitor", Network: switchNet, Log: filepath.Join(o.Logs, "switch-routes.log"),
		Argv: []string{"ip", "-tshort", "-oneline", "monitor", "route"},
	}
	if err := b.routes.Start(); err != nil {
		return nil, err
	}
	// From now on: what the kernel has stays until the speakers are back, as a switch's forwarding plane keeps it.
	b.bird.Argv = append(b.bird.Argv, "-R")
	return b, nil
}

// bridge makes a bridge with an address of its own. Its link address is set, or it would be the least one of its ports: with a port
// that comes or goes it would be another, of which its neighbours know only when they are asked next.
func bridge(name string, address netip.Addr) []string {
	return []string{
		"link add " + name + " type bridge", "link set " + name + " address " + linkAddress(address).String(),
		fmt.Sprintf("address add %s/24 dev %s", address, name), "link set " + name + " up",
	}
}

// attach connects a network with the LAN: its interface eth0 has the address, the switch's port has the network's name.
func attach(n sandbox.Namespace, port string, address netip.Addr) error {
	var err error
	if n == here { // which has no name, so its end stays where the link is made
		err = here.IP("link add eth0 type veth peer name " + port + " netns " + string(switchNet))
	} else {
		err = switchNet.IP("link add " + port + " type veth peer name eth0 netns " + string(n))
	}
	if err != nil {
		return err
	}
	return n.IP("link set eth0 address "+linkAddress(address).String(),
		fmt.Sprintf("address add %s/24 dev eth0", address), "link set eth0 up")
}

// plug joins a port to the LAN.
func plug(port string) error { return switchNet.IP("link set " + port + " master " + lan + " up") }

// unplug takes it away: nothing goes through any more, and nobody is told.
func unplug(port string) error { return switchNet.IP("link set " + port + " nomaster down") }

// detach is the end of what attach made. (Links also go with their network, but later.)
func detach(port string) error { return switchNet.IP("link delete " + port) }

// kernelRoute is part of what `ip -json route` prints.
type kernelRoute struct {
	Dst      string     `json:"dst"`
	Gateway  netip.Addr `json:"gateway"`
	NextHops []struct {
		Gateway netip.Addr `json:"gateway"`
	} `json:"nexthops"`
}

// nextHops is where the kernel of the switch sends packets to an address; sorted, empty without a route.
func (b *border) nextHops(address netip.Addr) ([]netip.Addr, error) {
	out, err := switchNet.Run("", "ip", "-json", "route", "show", "exact", address.String())
	if err != nil {
		return nil, err
	}
	var routes []kernelRoute
	if err := json.Unmarshal([]byte(out), &routes); err != nil {
		return nil, fmt.Errorf("routes of the switch: %w in %s", err, out)
	}
	var hops []netip.Addr
	for _, r := range routes {
		if r.Gateway.IsValid() {
			hops = append(hops, r.Gateway)
		}
		for _, h := range r.NextHops {
			hops = append(hops, h.Gateway)
		}
	}
	slices.SortFunc(hops, netip.Addr.Compare)
	return hops, nil
}

// ask runs a command of BIRD's command line.
func (b *border) ask(words ...string) (string, error) {
	return here.Run("", "birdc", append([]string{"-r", "-s", b.socket}, words...)...)
}

// sessions tells which members have an established session.
func (b *border) sessions() (map[string]bool, error) {
	out, err := b.ask("show", "protocols")
	if err != nil {
		return nil, err
	}
	up := map[string]bool{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 6 && f[1] == "BGP" {
			up[f[0]] = f[len(f)-1] == "Established"
		}
	}
	return up, nil
}

// paths counts the fresh paths to an address by the member that announced them; paths kept of a lost one do not count.
func (b *border) paths(address netip.Addr) (map[string]int, error) {
	out, err := b.ask("show", "route", "for", address.String())
	if err != nil {
		return nil, err
	}
	return countPaths(out), nil
}

// countPaths reads lines such as
//
//	203.0.113.10/32      unicast [m1 2026-01-02 02:24:41.628] * (100) [AS65000?]
//
// where an s after the preference marks what was kept of a lost speaker.
func countPaths(answer string) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(answer) {
		_, rest, ok := strings.Cut(line, " [")
		if !ok {
			continue
		}
		member, rest, _ := strings.Cut(rest, " ")
		if _, after, ok := strings.Cut(rest, "("); ok {
			if preference, _, ok := strings.Cut(after, ")"); ok && !strings.HasSuffix(preference, "s") {
				out[member]++
			}
		}
	}
	return out
}

// starts runs BIRD and waits until it answers.
func (b *border) starts(ctx context.Context) error {
	if err := b.bird.Start(); err != nil {
		return err
	}
	return eventually(ctx, "answer of the switch", func() error {
		if !b.bird.Running() {
			return ended(b.bird)
		}
		_, err := b.ask("show", "status")
		return err
	})
}
