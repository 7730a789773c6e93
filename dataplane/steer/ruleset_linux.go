// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// chain is a chain of our table and its rules.
type chain struct {
	chain *nftables.Chain
	rules [][]expr.Any
}

// chains is what our table says; `nft list table inet fairlead-steer` shows it. Whoever changes it raises filterVersion.
// What a translated connection costs here does not depend on the number of addresses: it meets no set.
//
//   - arriving: connections that come from outside for a service address are marked, and so are the packets of their
//     answers then: a translated answer's source is no service address yet when it is routed. After a change of the
//     mark, a connection that still bears a former one gets that of now first, with whichever packet comes next.
//   - echo and own-echo: pings are answered by an address of this host's, since the kernel refuses to answer from a service
//     address that no interface has. Conntrack puts the service address back. What this host itself sends meets own-echo.
//   - service: whatever was not translated may only use the Service's ports, and only if somebody here can answer. It
//     is a prerouting chain because of the same refusal: rejections made later would not leave. Here packets get MarkIn,
//     too, which an ip rule may deliver here: translated ones never bear it.
//     What goes no further is counted where that is decided, a chain for each reason: drop-icmp, refuse-unanswered, refuse-port.
//   - answers: what this host sends from a service address, or about a packet to one; former marks as in arriving.
//   - leave: where what comes from a service address goes. What answers a connection goes back to where that came from:
//     through the switch if it entered there, which arriving noted, else by the main table, for which it gets both marks.
//     The kernel has a refusal belong to the connection that it refuses. All else goes through the switch.
//   - own: what this host sends to a service address, unless it was translated. To a port that no Service has, IPv4 packets
//     that are no TCP are refused before they are sent: their ICMP error would have to come from the service address.
//   - quiet: no neighbour advertisements for service addresses.
//   - clamp: ICMP errors about a flow may reach another node, so its segments fit what is known of both ways.
func chains(m marks) []chain {
	base := func(name string, t nftables.ChainType, hook *nftables.ChainHook, priority nftables.ChainPriority) *nftables.Chain {
		return &nftables.Chain{Name: name, Type: t, Hooknum: hook, Priority: &priority}
	}
	beforeNAT, afterNAT := *nftables.ChainPriorityNATDest-20, *nftables.ChainPriorityFilter
	about := func(icmp, kind byte, destination, length uint32, s Set) []expr.Any {
		return rule(protocol(icmp), icmpType(kind), in(payload(expr.PayloadBaseTransportHeader, destination, length), s))
	}
	var renew [][]expr.Any
	if m.former != 0 {
		renew = [][]expr.Any{rule(connectionHas(m.former), renewConnection(m.former, m.out))}
	}
	return []chain{
		{&nftables.Chain{Name: chainICMP}, [][]expr.Any{{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}}},
		refusing(chainUnanswered),
		refusing(chainNoPort),
		{&nftables.Chain{Name: "service4"}, service(SetPorts4, m)},
		{&nftables.Chain{Name: "service6"}, service(SetPorts6, m)},
		{&nftables.Chain{Name: chainLeave}, [][]expr.Any{
			rule(isAnswer(), mark(m.back())),
			rule(mark(m.out)),
		}},
		{base("arriving", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, *nftables.ChainPriorityMangle), append(renew,
			rule(connectionHas(m.out), isAnswer(), mark(m.out)),
			rule(connectionHas(m.out), verdict(expr.VerdictAccept)),
			rule(to(SetAddresses4), in(meta(expr.MetaKeyIIFNAME), SetInterfaces), markConnection(m.out), verdict(expr.VerdictAccept)),
			rule(to(SetAddresses6), in(meta(expr.MetaKeyIIFNAME), SetInterfaces), markConnection(m.out), verdict(expr.VerdictAccept)),
			rule(from(SetAddresses4), jump(expr.VerdictGoto, chainLeave)),
			rule(from(SetAddresses6), jump(expr.VerdictGoto, chainLeave)),
		)},
		{base("echo", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, beforeNAT), echoes()},
		{base("own-echo", nftables.ChainTypeNAT, nftables.ChainHookOutput, beforeNAT), echoes()},
		{base("service", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, afterNAT), [][]expr.Any{
			rule(wasTranslated(), verdict(expr.VerdictAccept)),
			rule(to(SetAddresses4), jump(expr.VerdictGoto, "service4")),
			rule(to(SetAddresses6), jump(expr.VerdictGoto, "service6")),
		}},
		{base("answers", nftables.ChainTypeRoute, nftables.ChainHookOutput, *nftables.ChainPriorityMangle), append(renew,
			rule(connectionHas(m.out), isAnswer(), mark(m.out), verdict(expr.VerdictAccept)),
			rule(from(SetAddresses4), jump(expr.VerdictGoto, chainLeave)),
			rule(from(SetAddresses6), jump(expr.VerdictGoto, chainLeave)),
			rule(about(unix.IPPROTO_ICMP, icmpUnreachable, icmpInner4, 4, SetAddresses4), jump(expr.VerdictGoto, chainLeave)),
			rule(about(unix.IPPROTO_ICMPV6, icmp6Unreachable, icmpInner6, 16, SetAddresses6), jump(expr.VerdictGoto, chainLeave)),
		)},
		{base("own", nftables.ChainTypeRoute, nftables.ChainHookOutput, afterNAT), [][]expr.Any{
			rule(to(SetAddresses4), isNot(unix.IPPROTO_TCP), isNot(unix.IPPROTO_ICMP), notToPort(SetPorts4), jump(expr.VerdictGoto, chainNoPort)),
			rule(to(SetAddresses4), markOnly(m.in, m.out)),
			rule(to(SetAddresses6), markOnly(m.in, m.out)),
		}},
		{base(chainQuiet, nftables.ChainTypeFilter, nftables.ChainHookOutput, afterNAT), [][]expr.Any{
			rule(about(unix.IPPROTO_ICMPV6, icmp6Advertisement, icmpTarget, 16, SetAddresses6), []expr.Any{&expr.Counter{}}, verdict(expr.VerdictDrop)),
		}},
		{base("clamp", nftables.ChainTypeFilter, nftables.ChainHookForward, *nftables.ChainPriorityMangle), [][]expr.Any{
			rule(connectionHas(m.out), protocol(unix.IPPROTO_TCP), isSYN(), clampMSS()),
		}},
	}
}

// echoes has this host answer pings.
func echoes() [][]expr.Any {
	return [][]expr.Any{
		rule(to(SetAddresses4), protocol(unix.IPPROTO_ICMP), icmpType(icmpEcho), redirect()),
		rule(to(SetAddresses6), protocol(unix.IPPROTO_ICMPV6), icmpType(icmp6Echo), redirect()),
	}
}

// service is what becomes of packets to a service address that nobody translated.
func service(ports Set, m marks) [][]expr.Any {
	icmp, tooBig := byte(unix.IPPROTO_ICMP), rule(icmpType(icmpUnreachable), is(payload(expr.PayloadBaseTransportHeader, 1, 1), 4))
	echo := byte(icmpEcho)
	if ports == SetPorts6 {
		icmp, tooBig, echo = unix.IPPROTO_ICMPV6, icmpType(icmp6TooBig), icmp6Echo
	}
	return [][]expr.Any{
		markOnly(m.in, m.out),
		rule(protocol(icmp), icmpType(echo), verdict(expr.VerdictAccept)),
		rule(protocol(icmp), tooBig, verdict(expr.VerdictAccept)),
		rule(protocol(icmp), jump(expr.VerdictGoto, chainICMP)),
		rule(toPort(ports), addressIsLocal(), verdict(expr.VerdictAccept)),
		rule(toPort(ports), socketIsTransparent(), verdict(expr.VerdictAccept)),
		rule(toPort(ports), jump(expr.VerdictGoto, chainUnanswered)),
		jump(expr.VerdictGoto, chainNoPort),
	}
}

// refusing is a chain that counts packets and refuses them.
func refusing(name string) chain {
	return chain{&nftables.Chain{Name: name}, [][]expr.Any{
		{&expr.Counter{}},
		rule(protocol(unix.IPPROTO_TCP), reject(unix.NFT_REJECT_TCP_RST, 0)),
		reject(unix.NFT_REJECT_ICMPX_UNREACH, unix.NFT_REJECT_ICMPX_PORT_UNREACH),
	}}
}

// chainLeave sends answers on their way.
const chainLeave = "leave"

// ICMP types, where the destination of the packet stands that an ICMP error is about, and the target of an
// advertisement.
const (
	icmpEcho           = 8
	icmpUnreachable    = 3
	icmp6Unreachable   = 1
	icmp6TooBig        = 2
	icmp6Echo          = 128
	icmp6Advertisement = 136
	icmpInner4         = 8 + 16
	icmpInner6         = 8 + 24
	icmpTarget         = 8
)

func rule(parts ...[]expr.Any) (out []expr.Any) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func meta(key expr.MetaKey) []expr.Any { return []expr.Any{&expr.Meta{Key: key, Register: 1}} }

func payload(base expr.PayloadBase, offset, length uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: base, Offset: offset, Len: length}}
}

// in tells whether what was loaded is in a set.
func in(load []expr.Any, s Set) []expr.Any {
	return append(load, &expr.Lookup{SourceRegister: 1, SetName: string(s)})
}

// is tells whether what was loaded has these bytes.
func is(load []expr.Any, data ...byte) []expr.Any {
	return append(load, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data})
}

// has tells whether what was loaded has any of these bits.
func has(load []expr.Any, bits uint32) []expr.Any {
	return append(load,
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: number(bits), Xor: number(0)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: number(0)})
}

// withBits sets bits of what was loaded.
func withBits(load []expr.Any, bits uint32) []expr.Any { return exchange(load, bits, bits) }

// exchange clears bits of what was loaded, and then sets some.
func exchange(load []expr.Any, clear, set uint32) []expr.Any {
	return append(load, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: number(^clear), Xor: number(set)})
}

func number(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

func mark(bits uint32) []expr.Any {
	return append(withBits(meta(expr.MetaKeyMARK), bits), &expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1})
}

// markOnly sets bits of the packet's mark instead of others.
func markOnly(bits, others uint32) []expr.Any {
	return append(exchange(meta(expr.MetaKeyMARK), others|bits, bits), &expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1})
}

func connection(key expr.CtKey) []expr.Any { return []expr.Any{&expr.Ct{Key: key, Register: 1}} }

func markConnection(bits uint32) []expr.Any {
	return append(withBits(connection(expr.CtKeyMARK), bits), &expr.Ct{Key: expr.CtKeyMARK, SourceRegister: true, Register: 1})
}

// renewConnection gives a connection bits instead of former ones.
func renewConnection(former, bits uint32) []expr.Any {
	return append(exchange(connection(expr.CtKeyMARK), former|bits, bits), &expr.Ct{Key: expr.CtKeyMARK, SourceRegister: true, Register: 1})
}

func connectionHas(bits uint32) []expr.Any { return has(connection(expr.CtKeyMARK), bits) }

// isAnswer tells of packets back to who began a connection.
func isAnswer() []expr.Any {
	const reply = 1 // IP_CT_DIR_REPLY
	return is(connection(expr.CtKeyDIRECTION), reply)
}

// wasTranslated tells of connections whose destination was.
func wasTranslated() []expr.Any {
	const destinationNAT = 1 << 5 // IPS_DST_NAT
	return has(connection(expr.CtKeySTATUS), destinationNAT)
}

func ofFamily(s Set) (family byte, source, destination, length uint32) {
	if s == SetAddresses6 || s == SetPorts6 {
		return unix.NFPROTO_IPV6, 8, 24, 16
	}
	return unix.NFPROTO_IPV4, 12, 16, 4
}

func to(s Set) []expr.Any {
	family, _, destination, length := ofFamily(s)
	return rule(is(meta(expr.MetaKeyNFPROTO), family), in(payload(expr.PayloadBaseNetworkHeader, destination, length), s))
}

func from(s Set) []expr.Any {
	family, source, _, length := ofFamily(s)
	return rule(is(meta(expr.MetaKeyNFPROTO), family), in(payload(expr.PayloadBaseNetworkHeader, source, length), s))
}

// toPort tells whether address, protocol and port are in a set. They stand in consecutive registers of four bytes.
func toPort(s Set) []expr.Any {
	_, _, destination, length := ofFamily(s)
	first := uint32(unix.NFT_REG32_00)
	next := first + length/4
	return []expr.Any{
		&expr.Payload{DestRegister: first, Base: expr.PayloadBaseNetworkHeader, Offset: destination, Len: length},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: next},
		&expr.Payload{DestRegister: next + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: first, SetName: string(s)},
	}
}

// notToPort is the contrary of toPort.
func notToPort(s Set) []expr.Any {
	all := toPort(s)
	lookup := *all[len(all)-1].(*expr.Lookup)
	lookup.Invert = true
	return append(all[:len(all)-1], &lookup)
}

// isNot tells whether the packet's protocol is another one.
func isNot(number byte) []expr.Any {
	return append(meta(expr.MetaKeyL4PROTO), &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{number}})
}

func protocol(number byte) []expr.Any { return is(meta(expr.MetaKeyL4PROTO), number) }

func icmpType(t byte) []expr.Any { return is(payload(expr.PayloadBaseTransportHeader, 0, 1), t) }

func isSYN() []expr.Any {
	const syn, rst = 0x02, 0x04
	return append(payload(expr.PayloadBaseTransportHeader, 13, 1),
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{syn | rst}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{syn}})
}

// clampMSS lowers the maximum segment size to what the route carries.
func clampMSS() []expr.Any {
	const mss, offset, length = 2, 2, 2
	return []expr.Any{
		&expr.Rt{Register: 1, Key: expr.RtTCPMSS},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: length, Size: length},
		&expr.Exthdr{SourceRegister: 1, Type: mss, Offset: offset, Len: length, Op: expr.ExthdrOpTcpopt},
	}
}

// addressIsLocal tells whether this host can answer from the packet's destination: an interface has it.
func addressIsLocal() []expr.Any {
	return is([]expr.Any{&expr.Fib{Register: 1, ResultADDRTYPE: true, FlagDADDR: true}}, number(unix.RTN_LOCAL)...)
}

// socketIsTransparent tells whether a program waits for the packet that answers from any address.
func socketIsTransparent() []expr.Any {
	return is([]expr.Any{&expr.Socket{Key: expr.SocketKeyTransparent, Register: 1}}, 1)
}

func redirect() []expr.Any { return []expr.Any{&expr.Redir{}} }

func reject(kind uint32, code byte) []expr.Any {
	return []expr.Any{&expr.Reject{Type: kind, Code: code}}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

func jump(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}
}
