// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/stage"
)

// The names of what is made up.
const (
	madePool   = "made-up"
	madeSwitch = "tor"
)

// Pools that are made up.
var (
	poolIPv4 = netip.MustParsePrefix("203.0.113.0/24")
	poolIPv6 = netip.MustParsePrefix("2001:db8:ffff::/120")
)

// neighbour is a switch as manifests describe it.
type neighbour struct {
	name     string
	address  netip.Addr
	asn, own uint32
	hold     time.Duration
	key      string
	families []bgp.Family // that are exchanged with it; none: both
}

// planSwitches makes a switch of each neighbour.
func (c *Cluster) planSwitches(p *plan) error {
	all, err := c.neighbours(p)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		all = append(all, p.makeSwitch())
	}
	if len(all) > maxSwitches {
		return fmt.Errorf("%s: %d BGP neighbours, of which a world takes %d; keep some", c.dir, len(all), maxSwitches)
	}
	known := map[netip.Addr]string{}
	for i, n := range all {
		if other := known[n.address]; other != "" {
			p.note("BGP neighbours %s and %s have one address, %s: it is one switch", other, n.name, n.address)
			continue
		}
		known[n.address] = n.name
		if p.has(n.address) {
			p.note("BGP neighbour %s has the address of a Node, %s: here they are two machines, and one fails without the other", n.name, n.address)
		}
		name := machineName(n.name)
		for p.taken(name) {
			name = "switch-" + name
		}
		o := fabric.BIRD(name, n.asn)
		o.Hold, o.RouterID = n.hold, n.address
		if !n.address.Is4() {
			o.RouterID = netip.AddrFrom4([4]byte{100, 127, 254, byte(i + 1)})
		}
		p.stage.Switches = append(p.stage.Switches, stage.ClusterSwitch{Options: o, Address: n.address, MemberASN: n.own, Key: n.key})
		p.cast.Switches = append(p.cast.Switches, name)
		p.families[name] = n.families
	}
	return nil
}

// neighbours lists those of BGPPeers and of the old installation's config map, in order of their names.
func (c *Cluster) neighbours(p *plan) (out []neighbour, err error) {
	for _, w := range c.peers {
		if w.Interface != "" {
			p.note("BGP neighbour %s is left out: it is behind interface %s of nodes, and simulated nodes find nobody there", w.Name, w.Interface)
			continue
		}
		out = append(out, neighbour{name: w.Name, address: w.Address, asn: w.ASN, own: w.OwnASN, hold: w.HoldTime, key: key(w.Password.Reveal())})
	}
	for _, m := range c.configMaps {
		if m.Name != convert.ConfigMapGoBGP {
			continue
		}
		conf, err := legacy.Parse(convert.KeyGoBGP, []byte(m.Data[convert.KeyGoBGP]))
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
		}
		for _, f := range conf.Faults {
			p.note("ConfigMap %s/%s: a neighbour is left out: %s", m.Namespace, m.Name, f.Err)
		}
		p.stage.ASN = conf.Global.ASN
		for _, x := range conf.Peers {
			if x.Password != "" {
				p.note("ConfigMap %s/%s: the password of %s is left out: the simulated switch asks for none", m.Namespace, m.Name, x.Address)
			}
			out = append(out, neighbour{
				name: cmp.Or(x.Name, "bgp-"+x.Address.String()), address: x.Address, asn: x.RemoteASN, own: cmp.Or(x.LocalASN, conf.Global.ASN), hold: x.HoldTime,
				families: x.Normal(conf.Global.ASN).Families,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b neighbour) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// makeSwitch makes one up, and the BGPPeer that says so.
func (p *plan) makeSwitch() neighbour {
	n := neighbour{name: madeSwitch, asn: stage.SwitchASN, own: stage.OurASN, address: netip.MustParseAddr("192.0.2.1")}
	for p.has(n.address) {
		n.address = n.address.Next()
	}
	p.objects = append(p.objects, stage.Custom(&api.BGPPeer{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.MetalLBV1Beta2, Kind: "BGPPeer"},
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.System, Name: n.name},
		Spec:       api.BGPPeerSpec{MyASN: n.own, PeerASN: n.asn, PeerAddress: n.address.String(), EnableGracefulRestart: true},
	}))
	p.add("no usable BGPPeer is in the manifests: one switch was made, %s at %s in AS %d", n.name, n.address, n.asn)
	return n
}

// has tells whether a node has an address.
func (p *plan) has(a netip.Addr) bool {
	return slices.ContainsFunc(p.stage.Nodes, func(n stage.ClusterNode) bool {
		return slices.ContainsFunc(n.Addresses, func(in netip.Prefix) bool { return in.Addr() == a })
	})
}

// key stands for a signature with a password, as speakers of a world show it.
func key(password string) string {
	if password == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:8])
}

// machineName is a name as machines have them.
func machineName(name string) string { return strings.NewReplacer("/", "-", ":", "-").Replace(name) }

var passwordLine = regexp.MustCompile(`(?m)^\s*auth-password\s*=.*$`)

// withoutPassword is a config map without passwords, which members would look for in a file of theirs.
func withoutPassword(o *corev1.ConfigMap) *corev1.ConfigMap {
	o = o.DeepCopy()
	if text, ok := o.Data[convert.KeyGoBGP]; ok {
		o.Data[convert.KeyGoBGP] = passwordLine.ReplaceAllString(text, "")
	}
	return o
}

// planServices takes in the Services that are announced, and a pool if there is none.
func (c *Cluster) planServices(p *plan) error {
	others, pooled, families := 0, 0, map[corev1.IPFamily]bool{}
	for _, o := range c.services {
		if !isAnnounced(o) {
			others++
			continue
		}
		o = o.DeepCopy()
		o.Status = corev1.ServiceStatus{}
		p.services = append(p.services, o)
		if len(o.Spec.ExternalIPs) == 0 {
			pooled++
		}
		for _, f := range o.Spec.IPFamilies {
			families[f] = true
		}
	}
	if others > 0 {
		p.unused = append(p.unused, fmt.Sprintf("%d Service of another type than LoadBalancer, without externalIPs", others))
	}
	slices.SortFunc(p.services, func(a, b *corev1.Service) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	if len(c.pools) > 0 || pooled == 0 {
		return nil
	}
	addresses := []string{poolIPv4.String()}
	if families[corev1.IPv6Protocol] {
		addresses = append(addresses, poolIPv6.String())
	}
	p.objects = append(p.objects, stage.Custom(&api.IPAddressPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion, Kind: "IPAddressPool"}, // no advertisement is about it
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.System, Name: madePool},
		Spec:       api.IPAddressPoolSpec{Addresses: addresses},
	}))
	p.add("no usable IPAddressPool is in the manifests: one was made, of %s", strings.Join(addresses, " and "))
	return nil
}
