// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64) && others

package program

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"fairlead.io/fairlead/dataplane/sock"
)

// other is somebody else's resolution at sockets, compiled by hack/others/run.sh from its sources.
type other struct {
	name, object string
	programs     map[ebpf.AttachType]string
	// serves has a Service of theirs lead to one backend.
	serves func(put func(table string, key, value []byte), number uint32, protocol uint8, service, backend netip.AddrPort)
	// peers says that programs which ask for their peer over TCP are told the Service's address; those of sockets without a connection always are.
	peers bool
	nets  []string
}

var (
	native = binary.NativeEndian
	big    = binary.BigEndian
)

// cilium is that of its version 1.17: struct lb4_key, lb4_service, lb4_backend and lb4_reverse_nat. Protocols are not told apart.
var cilium = other{
	name: "Cilium", object: "CILIUM", peers: true, nets: []string{"connect tcp4", "connect mapped", "connect udp4", "send udp4"},
	programs: map[ebpf.AttachType]string{
		ebpf.AttachCGroupInet4Connect: "cil_sock4_connect", ebpf.AttachCgroupInet4GetPeername: "cil_sock4_getpeername",
		ebpf.AttachCGroupUDP4Sendmsg: "cil_sock4_sendmsg", ebpf.AttachCGroupUDP4Recvmsg: "cil_sock4_recvmsg",
		ebpf.AttachCGroupInet6Connect: "cil_sock6_connect", ebpf.AttachCgroupInet6GetPeername: "cil_sock6_getpeername",
		ebpf.AttachCGroupUDP6Sendmsg: "cil_sock6_sendmsg", ebpf.AttachCGroupUDP6Recvmsg: "cil_sock6_recvmsg",
	},
	serves: func(put func(string, []byte, []byte), number uint32, _ uint8, service, backend netip.AddrPort) {
		address := func(a netip.AddrPort) []byte { return big.AppendUint16(a.Addr().AsSlice(), a.Port()) }
		key := func(slot uint16) []byte { return append(native.AppendUint16(address(service), slot), 0, 0, 0, 0) }
		value := func(first uint32, count uint16) []byte {
			return append(native.AppendUint16(native.AppendUint16(native.AppendUint32(nil, first), count), uint16(number)), 0, 0, 0, 0)
		}
		put("test_cilium_lb4_backends", native.AppendUint32(nil, number), append(address(backend), 0, 0, 0, 0, 0, 0))
		put("test_cilium_lb4_services", key(1), value(number, 0))
		put("test_cilium_lb4_services", key(0), value(0, 1))
		put("test_cilium_lb4_reverse_nat", native.AppendUint16(nil, uint16(number)), address(service))
	},
}

// calico is that of its newest release by the Go module proxy: struct calico_nat_key, calico_nat_value, calico_nat_secondary_key and calico_nat_dest.
var calico = other{
	name: "Calico", object: "CALICO", nets: []string{"connect tcp4", "send udp4"},
	programs: map[ebpf.AttachType]string{
		ebpf.AttachCGroupInet4Connect: "calico_connect_v4", ebpf.AttachCGroupUDP4Sendmsg: "calico_sendmsg_v4", ebpf.AttachCGroupUDP4Recvmsg: "calico_recvmsg_v4",
	},
	serves: func(put func(string, []byte, []byte), number uint32, protocol uint8, service, backend netip.AddrPort) {
		address := func(head []byte, a netip.AddrPort) []byte {
			return native.AppendUint16(append(head, a.Addr().AsSlice()...), a.Port())
		}
		const bits = 8 * (4 + 2 + 1) // of any source
		key := append(address(native.AppendUint32(nil, bits), service), protocol, 0, 0, 0, 0, 0)
		put("cali_v4_nat_fe3", key, append(native.AppendUint32(native.AppendUint32(nil, number), 1), make([]byte, 12)...))
		put("cali_v4_nat_be", native.AppendUint32(native.AppendUint32(nil, number), 0), append(address(nil, backend), 0, 0))
	},
}

// load gives their programs and tables.
func (o *other) load(t *testing.T) *ebpf.Collection {
	spec, err := ebpf.LoadCollectionSpec(os.Getenv(o.object))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// attach puts them at a cgroup.
func (o *other) attach(t *testing.T, c *ebpf.Collection, cgroup string) {
	for at, name := range o.programs {
		attached, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: at, Program: c.Programs[name]})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { _ = attached.Close() })
	}
}

// Balancing §16.1, §25: with the programs of Cilium or Calico at the same cgroup, attached before ours or after, each resolves what is its own and
// leaves the other's alone, and says who the peer is as it does by itself.
// Rule: balancing §16.
func TestBesideOthers(t *testing.T) {
	for _, o := range []other{cilium, calico} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s first=%t", o.name, first), func(t *testing.T) { besideOther(t, &o, first) })
		}
	}
}

func besideOther(t *testing.T, o *other, first bool) {
	l, c := newLab(t), o.load(t)
	if first {
		o.attach(t, c, l.cgroup)
	}
	k := l.tables(l.open())
	if !first {
		o.attach(t, c, l.cgroup)
	}
	put := func(table string, key, value []byte) {
		m := c.Maps[table]
		if m == nil {
			t.Fatalf("no table %s among %v", table, c.Maps)
		}
		if err := m.Put(key, value); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	tcp, udp := serve(t, "tcp4", "127.0.0.1"), serve(t, "udp4", "127.0.0.1")
	k.hold(sock.Want{Rules: []*sock.Rule{service(1, front(sock.TCP, vip4, tcp), front(sock.UDP, vip4, udp))}})
	theirTCP, theirUDP := netip.MustParseAddrPort("10.97.0.10:80"), netip.MustParseAddrPort("10.97.0.11:53")
	otherTCP, otherUDP := serve(t, "tcp4", "127.0.0.2"), serve(t, "udp4", "127.0.0.2")
	o.serves(put, 7, sock.TCP, theirTCP, otherTCP.at)
	o.serves(put, 8, sock.UDP, theirUDP, otherUDP.at)
	for _, what := range o.nets {
		var op, network string
		if _, err := fmt.Sscan(what, &op, &network); err != nil {
			t.Fatal(err)
		}
		ours, theirs, to := tcp, otherTCP, theirTCP
		if network[:3] == "udp" {
			ours, theirs, to = udp, otherUDP, theirUDP
		}
		peer := to
		if op == "connect" && !o.peers {
			peer = theirs.at
		}
		type want struct{ to, said, peer netip.AddrPort }
		wants := []want{{vip4, ours.at, vip4}, {to, theirs.at, peer}}
		if op == "connect" { // sends are all of one socket, to which an answer of an endpoint is one of the Service
			wants = append(wants, want{ours.at, ours.at, ours.at}, want{theirs.at, theirs.at, theirs.at})
		}
		for _, x := range wants {
			r := l.client.do(call{Op: op, Net: network, To: x.to})
			if r.Said != x.said.String() || netip.AddrPortFrom(r.Peer.Addr().Unmap(), r.Peer.Port()) != x.peer {
				t.Errorf("%s to %s: %+v, want %s, known as %s", what, x.to, r, x.said, x.peer)
			}
		}
	}
	o.serves(put, 9, sock.TCP, vip4, otherTCP.at) // both know it: who came first decides
	said := tcp.at
	if first {
		said = otherTCP.at
	}
	if r := l.client.do(call{Op: "connect", Net: "tcp4", To: vip4}); r.Said != said.String() {
		t.Errorf("an address that both know: %+v, want %s", r, said)
	}
}
