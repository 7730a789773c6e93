// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// TableName is our nftables table, of family inet.
const TableName = "fairlead-tunnel"

// The source of what leaves by the tunnel is rewritten before kube-proxy (100), a CNI or package nat (90) would do so: others know no
// way to a pod.
const prioritySource = 85

// peersPerMessage keeps a list of elements below what a netlink attribute can hold.
const peersPerMessage = 400

// guard is our table:
//
//   - input: VXLAN of our number comes from the hosts that we were told of only, and brings nothing but their tunnel addresses.
//   - forward: what comes by the tunnel goes on to pods only where proxy ports lead, or as an answer. Segments fit the tunnel.
//   - postrouting: what leaves by the tunnel comes from this host's tunnel address.
//
// It is replaced as a whole, in one transaction, by another one when anything of it changes. An empty chain is named for what it is of.
type guard struct {
	namespace int
	conn      *nftables.Conn
}

func (g *guard) close() {
	if g.conn != nil {
		_ = g.conn.CloseLasting() // nothing is on its way
		g.conn = nil
	}
}

// put brings the table to what it shall be, nil for none, and tells whether it was otherwise.
func (g *guard) put(r *Rules) (changed bool, err error) {
	if g.conn == nil {
		if g.conn, err = nftables.New(nftables.AsLasting(), nftables.WithNetNSFd(g.namespace)); err != nil {
			g.conn = nil
			return false, err
		}
	}
	defer func() {
		if err != nil {
			g.close() // answers may be left behind
		}
	}()
	there, right, err := g.look(r)
	if err != nil || right {
		return false, err
	}
	table := &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}
	if there {
		g.conn.DelTable(table)
	}
	if r != nil {
		g.conn.AddTable(table)
		if err := g.fill(table, r); err != nil {
			return false, err
		}
	}
	return true, g.conn.Flush()
}

// look tells whether there is a table, and whether it is as it shall be.
func (g *guard) look(r *Rules) (there, right bool, err error) {
	tables, err := g.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, false, err
	}
	var table *nftables.Table
	for _, t := range tables {
		if t.Name == TableName {
			table = t
		}
	}
	if table == nil || r == nil {
		return table != nil, (table != nil) == (r != nil), nil
	}
	chains, err := g.conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return true, false, err
	}
	want := map[string]int{r.tag(): 0}
	for _, c := range r.chains(nil) {
		want[c.name] = len(c.rules)
	}
	for _, c := range chains {
		if c.Table.Name != TableName {
			continue
		}
		rules, known := want[c.Name]
		if !known {
			return true, false, nil
		}
		delete(want, c.Name)
		have, err := g.conn.GetRules(table, c)
		if err != nil || len(have) != rules {
			return true, false, err
		}
	}
	if len(want) > 0 || table.Flags != 0 {
		return true, false, nil
	}
	right, err = g.hasPeers(table, r.Peers)
	return true, right, err
}

// hasPeers tells whether the set of who may send is as it shall be.
func (g *guard) hasPeers(table *nftables.Table, want []netip.Addr) (bool, error) {
	elements, err := g.conn.GetSetElements(&nftables.Set{Table: table, Name: setPeers})
	if err != nil || len(elements) != len(want) {
		return false, err
	}
	for _, e := range elements {
		if a, ok := netip.AddrFromSlice(e.Key); !ok || !slices.Contains(want, a) {
			return false, nil
		}
	}
	return true, nil
}

const setPeers = "peers"

// layout is raised when the rules change that something makes.
const layout = 1

// tag names the table's contents.
func (r *Rules) tag() string {
	data, err := json.Marshal(struct {
		Layout int
		*Rules
	}{layout, r})
	if err != nil {
		panic(err) // numbers and addresses
	}
	sum := sha256.Sum256(data)
	return "of-" + hex.EncodeToString(sum[:8])
}

func (g *guard) fill(table *nftables.Table, r *Rules) error {
	peers := &nftables.Set{Table: table, Name: setPeers, KeyType: nftables.TypeIPAddr, KeyByteOrder: binaryutil.BigEndian}
	peers.ID = 1 // the library's own numbers are counted without a lock, for all connections
	if r.Over6 {
		peers.KeyType = nftables.TypeIP6Addr
	}
	if err := g.conn.AddSet(peers, nil); err != nil {
		return err
	}
	var elements []nftables.SetElement
	for _, p := range r.Peers {
		if elements = append(elements, nftables.SetElement{Key: p.AsSlice()}); len(elements) == peersPerMessage {
			if err := g.conn.SetAddElements(peers, elements); err != nil {
				return err
			}
			elements = nil
		}
	}
	if len(elements) > 0 {
		if err := g.conn.SetAddElements(peers, elements); err != nil {
			return err
		}
	}
	g.conn.AddChain(&nftables.Chain{Table: table, Name: r.tag()})
	for _, c := range r.chains(peers) {
		chain := g.conn.AddChain(&nftables.Chain{Table: table, Name: c.name, Type: c.kind, Hooknum: c.hook, Priority: nftables.ChainPriorityRef(c.priority)})
		for _, rule := range c.rules {
			g.conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule})
		}
	}
	return nil
}

type chain struct {
	name     string
	kind     nftables.ChainType
	hook     *nftables.ChainHook
	priority nftables.ChainPriority
	rules    [][]expr.Any
}

func (r *Rules) chains(peers *nftables.Set) []chain {
	input := chain{"input", nftables.ChainTypeFilter, nftables.ChainHookInput, *nftables.ChainPriorityFilter, [][]expr.Any{
		rule(r.encapsulated(), r.fromStranger(peers), drop()),
	}}
	forward := chain{"forward", nftables.ChainTypeFilter, nftables.ChainHookForward, *nftables.ChainPriorityFilter, [][]expr.Any{
		rule(by(expr.MetaKeyOIFNAME), is(expr.MetaKeyL4PROTO, unix.IPPROTO_TCP), isSYN(), clampMSS()),
		rule(by(expr.MetaKeyIIFNAME), connectionIs(expr.CtKeySTATE, established|related), accept()),
		rule(by(expr.MetaKeyIIFNAME), connectionIs(expr.CtKeySTATUS, translated), accept()),
		rule(by(expr.MetaKeyIIFNAME), drop()),
	}}
	post := chain{"postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, prioritySource, nil}
	covered := map[bool]bool{} // families, by whether they are IPv6
	for _, p := range r.Ranges {
		covered[p.Addr().Is6()] = true
		input.rules = append(input.rules, rule(by(expr.MetaKeyIIFNAME), family(p.Addr()), outside(p), drop()))
	}
	for _, six := range []bool{false, true} {
		if !covered[six] { // nothing of a family that hosts have no tunnel addresses of
			input.rules = append(input.rules, rule(by(expr.MetaKeyIIFNAME), is(expr.MetaKeyNFPROTO, protocolOf(six)), drop()))
		}
	}
	for _, own := range r.Own {
		post.rules = append(post.rules, rule(by(expr.MetaKeyOIFNAME), family(own), source(own), not(own.AsSlice()), []expr.Any{&expr.Masq{}}))
	}
	return []chain{input, forward, post}
}

// States and status of connections.
const (
	established = expr.CtStateBitESTABLISHED
	related     = expr.CtStateBitRELATED
	translated  = 1 << 5 // IPS_DST_NAT
)

func rule(parts ...[]expr.Any) (out []expr.Any) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func accept() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }
func drop() []expr.Any   { return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}} }

func is(key expr.MetaKey, value byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{value}}}
}

func not(value []byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: value}}
}

// by tells whether a packet comes or goes by the tunnel.
func by(key expr.MetaKey) []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, Interface)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name}}
}

func protocolOf(six bool) byte {
	if six {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

func family(a netip.Addr) []expr.Any { return is(expr.MetaKeyNFPROTO, protocolOf(a.Is6())) }

// source loads where a packet of the family comes from.
func source(a netip.Addr) []expr.Any {
	offset, length := uint32(12), uint32(4)
	if a.Is6() {
		offset, length = 8, 16
	}
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length}}
}

// outside tells whether a packet comes from outside a range.
func outside(p netip.Prefix) []expr.Any {
	raw := p.Addr().AsSlice()
	mask := make([]byte, len(raw))
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return append(source(p.Addr()),
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(len(raw)), Mask: mask, Xor: make([]byte, len(raw))},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: raw})
}

// encapsulated tells whether a packet is VXLAN of our number.
func (r *Rules) encapsulated() []expr.Any {
	var vni [4]byte
	binary.BigEndian.PutUint32(vni[:], r.VNI)
	return rule(is(expr.MetaKeyL4PROTO, unix.IPPROTO_UDP), []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, r.Port)},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 8 + 4, Len: 3},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: vni[1:]},
	})
}

// fromStranger tells whether a packet comes from none of the hosts that we know.
func (r *Rules) fromStranger(peers *nftables.Set) []expr.Any {
	a := netip.IPv4Unspecified()
	if r.Over6 {
		a = netip.IPv6Unspecified()
	}
	lookup := &expr.Lookup{SourceRegister: 1, Invert: true, SetName: setPeers}
	if peers != nil {
		lookup.SetID = peers.ID
	}
	return rule(family(a), source(a), []expr.Any{lookup})
}

func isSYN() []expr.Any {
	const syn, rst = 0x02, 0x04
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{syn | rst}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{syn}},
	}
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

// connectionIs tells whether any of some bits is set of what is known of a packet's connection.
func connectionIs(key expr.CtKey, bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: key, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: []byte{0, 0, 0, 0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{0, 0, 0, 0}},
	}
}
