// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel/message"
)

// proxyPort is an address of the tunnel and a port there.
type proxyPort struct {
	at       netip.AddrPort
	protocol uint8
}

// publishProxies tells what ports at the addresses of the tunnel lead to, as far as that has changed.
func (k *Kernel) publishProxies() {
	now := map[proxyPort][]string{}
	for _, at := range k.proxyPorts() {
		now[at] = k.leadsTo(at)
	}
	was := k.proxied
	k.proxied = now
	all := maps.Clone(was)
	if all == nil {
		all = map[proxyPort][]string{}
	}
	maps.Copy(all, now)
	for _, at := range slices.SortedFunc(maps.Keys(all), compareProxyPorts) {
		before, old := was[at]
		to, there := now[at]
		if old != there || !slices.Equal(before, to) {
			k.world.Publish(event.Proxies{
				Node: k.o.Node, Boot: k.boot, Address: at.at.Addr(), Port: at.at.Port(), Protocol: protocolText(at.protocol), There: there, To: to, By: k.by,
			})
		}
	}
}

func compareProxyPorts(a, b proxyPort) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.protocol, b.protocol))
}

// proxyPorts are those that the table of proxies decides about, at addresses that the tunnel has.
func (k *Kernel) proxyPorts() (out []proxyPort) {
	t := k.tables[message.ProxyTable]
	if t == nil {
		return nil
	}
	own := k.tunnelAddresses()
	for _, name := range slices.Sorted(maps.Keys(t.Sets)) {
		parts := t.Sets[name].Key
		if len(parts) != 3 || parts[1] != message.ProtocolNumber || parts[2] != message.PortNumber {
			continue
		}
		for key := range t.Elements[name] {
			b, _ := hex.DecodeString(key) // was judged when it came
			n := len(b) - 8
			a, _ := netip.AddrFromSlice(b[:n])
			if slices.Contains(own, a) {
				out = append(out, proxyPort{netip.AddrPortFrom(a, binary.BigEndian.Uint16(b[n+4:])), b[n]})
			}
		}
	}
	slices.SortFunc(out, compareProxyPorts)
	return slices.Compact(out)
}

// leadsTo are the endpoints that connections to a port get, whatever is drawn for them.
func (k *Kernel) leadsTo(p proxyPort) (out []string) {
	t := k.tables[message.ProxyTable]
	for script := []uint32{}; script != nil; {
		e := &exploring{script: script}
		verdict, endpoint := k.walk(t, Packet{Source: outside(p.at.Addr()), Destination: p.at.Addr(), Protocol: p.protocol, Port: p.at.Port()}, memory{}, e)
		if verdict == "translated" {
			out = append(out, endpoint.String())
		}
		script = e.next()
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// exploring has a packet drawn for what a script says, then the first each time.
type exploring struct {
	script, of []uint32
}

func (e *exploring) draw(of uint32) uint32 {
	i := len(e.of)
	if e.of = append(e.of, of); i >= len(e.script) {
		e.script = append(e.script, 0)
	}
	return e.script[i]
}

// next is the script after this one, nil after the last.
func (e *exploring) next() []uint32 {
	next := slices.Clone(e.script[:len(e.of)])
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] < e.of[i] {
			return next[:i+1]
		}
	}
	return nil
}
