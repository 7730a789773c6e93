// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// kindTunnel begins the keys of what tunnels are made of: hosts, and what proxy ports lead to.
const (
	kindTunnel  = 't'
	tunnelHost  = 'h'
	tunnelProxy = 'p'
)

// TunnelSettings are how tunnels are made.
type TunnelSettings struct {
	Port uint16 `json:"port"` // of UDP
	VNI  uint32 `json:"vni"`
	// MTU is in bytes; 0 is what the way between hosts leaves.
	MTU uint32 `json:"mtu,omitempty"`
	// Over6 says that packets between hosts are of IPv6.
	Over6  bool           `json:"over6,omitempty"`
	Ranges []netip.Prefix `json:"ranges"` // that tunnel addresses are of
	// Own is the tunnel of the host itself where it is outside the cluster, if it has one: it finds itself in no item.
	Own *TunnelHost `json:"own,omitempty"`
}

// TunnelHost is a host that is reached by a tunnel.
type TunnelHost struct {
	Name      string       `json:"name"`
	Underlay  netip.Addr   `json:"underlay"`  // where its packets are sent to
	Addresses []netip.Addr `json:"addresses"` // one of each family that there are any of
	Number    uint32       `json:"number"`    // unlike that of any other host
}

// Proxy is what the proxy ports of a policy lead to.
type Proxy struct {
	Name string       `json:"name"` // kind/name of the policy
	Pods []ProxiedPod `json:"pods"`
}

// ProxiedPod is a pod behind proxy ports.
type ProxiedPod struct {
	Node    string      `json:"node"`
	Address netip.Addr  `json:"address"`
	Ready   bool        `json:"ready"`
	Ports   []ProxyPort `json:"ports"`
}

// ProxyPort is a proxy port, and the pod's behind it.
type ProxyPort struct {
	Port   Port   `json:"port"`
	Target uint16 `json:"target"`
}

// TunnelHostKey is the key of a host's item.
func TunnelHostKey(host string) string { return string([]byte{kindTunnel, tunnelHost}) + host }

// TunnelHostValue encodes what a host's item says. The name is the key's.
func TunnelHostValue(h TunnelHost) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(tunnelHostMessage(h))
}

func tunnelHostMessage(h TunnelHost) *fairleadv1.TunnelHost {
	return &fairleadv1.TunnelHost{Underlay: h.Underlay.AsSlice(), Addresses: bytesOf(h.Addresses), Number: h.Number}
}

// ProxyKey is the key of the item about a policy's proxy ports; name is kind/name of it.
func ProxyKey(name string) string { return string([]byte{kindTunnel, tunnelProxy}) + name }

// ProxyValue encodes what such an item says. The name is the key's.
func ProxyValue(p Proxy) ([]byte, error) {
	m := &fairleadv1.Proxy{}
	for _, pod := range p.Pods {
		one := &fairleadv1.ProxiedPod{Node: pod.Node, Address: pod.Address.AsSlice(), Ready: pod.Ready}
		for _, port := range pod.Ports {
			one.Ports = append(one.Ports, &fairleadv1.ProxyPort{Port: portMessage(port.Port), Target: uint32(port.Target)})
		}
		m.Pods = append(m.Pods, one)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// tunnelItem is what an item of this kind says; both are nil for one that a later release may know.
type tunnelItem struct {
	host  *TunnelHost
	proxy *Proxy
}

func decodeTunnel(key string, value []byte) (i tunnelItem, err error) {
	switch {
	case len(key) < 2:
	case key[1] == tunnelHost:
		i.host, err = decodeTunnelHost(key[2:], value)
	case key[1] == tunnelProxy:
		i.proxy, err = decodeProxy(key[2:], value)
	}
	return i, err
}

func decodeTunnelHost(name string, value []byte) (*TunnelHost, error) {
	fail := func(err error) (*TunnelHost, error) {
		return nil, fmt.Errorf("decode item of tunnel host %s: %w", name, err)
	}
	var m fairleadv1.TunnelHost
	if err := proto.Unmarshal(value, &m); err != nil {
		return fail(err)
	}
	h, err := tunnelHostOf(name, &m)
	if err != nil {
		return fail(err)
	}
	return h, nil
}

func tunnelHostOf(name string, m *fairleadv1.TunnelHost) (*TunnelHost, error) {
	underlay, err := addressesOf([][]byte{m.GetUnderlay()})
	if err != nil {
		return nil, err
	}
	addresses, err := addressesOf(m.GetAddresses())
	if err != nil {
		return nil, err
	}
	return &TunnelHost{Name: name, Underlay: underlay[0], Addresses: addresses, Number: m.GetNumber()}, nil
}

func decodeProxy(name string, value []byte) (*Proxy, error) {
	fail := func(err error) (*Proxy, error) {
		return nil, fmt.Errorf("decode item of proxy ports of %s: %w", name, err)
	}
	var m fairleadv1.Proxy
	if err := proto.Unmarshal(value, &m); err != nil {
		return fail(err)
	}
	p := &Proxy{Name: name}
	for _, pod := range m.GetPods() {
		address, err := addressesOf([][]byte{pod.GetAddress()})
		if err != nil {
			return fail(err)
		}
		one := ProxiedPod{Node: pod.GetNode(), Address: address[0], Ready: pod.GetReady()}
		for _, port := range pod.GetPorts() {
			at, err := portOf(port.GetPort())
			if err != nil {
				return fail(err)
			}
			if port.GetTarget() == 0 || port.GetTarget() > math.MaxUint16 {
				return fail(fmt.Errorf("no such port: %d", port.GetTarget()))
			}
			one.Ports = append(one.Ports, ProxyPort{at, uint16(port.GetTarget())})
		}
		p.Pods = append(p.Pods, one)
	}
	return p, nil
}

// TunnelHosts lists the hosts that are reached by tunnels, in order of their names. They must not be written to. Only nodes that
// are told of all Services are told of these.
func (s State) TunnelHosts() (out []*TunnelHost) {
	for _, i := range s.items {
		if t, ok := i.decoded.(tunnelItem); ok && t.host != nil {
			out = append(out, t.host)
		}
	}
	return out
}

// OwnTunnel is the tunnel that a host has; nil for none. A host outside the cluster is told its own apart, whatever nodes are called.
func (s State) OwnTunnel(host string) *TunnelHost {
	if s.Tunnels == nil {
		return nil
	}
	if s.Tunnels.Own != nil {
		return s.Tunnels.Own
	}
	for _, h := range s.TunnelHosts() {
		if h.Name == host {
			return h
		}
	}
	return nil
}

// Proxies lists what proxy ports lead to, in order of the policies' names. They must not be written to. Only nodes that are told of all
// Services are told of these.
func (s State) Proxies() (out []*Proxy) {
	for _, i := range s.items {
		if t, ok := i.decoded.(tunnelItem); ok && t.proxy != nil {
			out = append(out, t.proxy)
		}
	}
	return out
}

// TunnelMessage encodes settings; nil for none.
func TunnelMessage(t *TunnelSettings) *fairleadv1.TunnelSettings {
	if t == nil {
		return nil
	}
	m := &fairleadv1.TunnelSettings{Port: uint32(t.Port), Vni: t.VNI, Mtu: t.MTU, Over6: t.Over6}
	if t.Own != nil {
		m.Own = tunnelHostMessage(*t.Own)
	}
	for _, r := range t.Ranges {
		m.Ranges = append(m.Ranges, r.String())
	}
	return m
}

func tunnelsOf(m *fairleadv1.TunnelSettings) (*TunnelSettings, error) {
	if m == nil {
		return nil, nil
	}
	if m.GetPort() == 0 || m.GetPort() > math.MaxUint16 {
		return nil, errors.New("settings of tunnels: no such port")
	}
	t := &TunnelSettings{Port: uint16(m.GetPort()), VNI: m.GetVni(), MTU: m.GetMtu(), Over6: m.GetOver6()}
	if m.GetOwn() != nil {
		own, err := tunnelHostOf("", m.GetOwn())
		if err != nil {
			return nil, fmt.Errorf("settings of tunnels: own: %w", err)
		}
		t.Own = own
	}
	for _, text := range m.GetRanges() {
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("settings of tunnels: range: %w", err)
		}
		t.Ranges = append(t.Ranges, r)
	}
	return t, nil
}
