// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// hashSeed is a number like others, but the same on every node and in every release; without one the kernel draws it.
const hashSeed = 0x6661_6972

// nftRegister is a register as the kernel numbers those of four bytes.
func nftRegister(r Register) uint32 { return unix.NFT_REG32_00 + uint32(r) }

// Where fields are in a packet.
var payloads = map[Field]expr.Payload{
	Source4:         {Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4},
	Destination4:    {Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
	Source6:         {Base: expr.PayloadBaseNetworkHeader, Offset: 8, Len: 16},
	Destination6:    {Base: expr.PayloadBaseNetworkHeader, Offset: 24, Len: 16},
	SourcePort:      {Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 2},
	DestinationPort: {Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
}

var metas = map[Field]expr.MetaKey{
	Family: expr.MetaKeyNFPROTO, Protocol: expr.MetaKeyL4PROTO, Inbound: expr.MetaKeyIIF, Outbound: expr.MetaKeyOIF, PacketMark: expr.MetaKeyMARK,
}

// encodeRule writes a rule as the kernel has it.
func encodeRule(r Rule) []expr.Any {
	var out []expr.Any
	for _, op := range r {
		if mark, ok := op.(SetMark); ok {
			out = append(out, encodeMark(mark)...)
			continue
		}
		out = append(out, encodeOp(op))
	}
	return out
}

func encodeMark(m SetMark) []expr.Any {
	at := nftRegister(m.Using)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: at},
		&expr.Bitwise{
			SourceRegister: at, DestRegister: at, Len: 4, Mask: []byte(word(^m.Bits)), Xor: []byte(word(m.Value)),
		},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: at, SourceRegister: true},
	}
}

func encodeOp(op Op) expr.Any {
	switch o := op.(type) {
	case Load:
		return encodeLoad(o)
	case Put:
		return &expr.Immediate{Register: nftRegister(o.Into), Data: []byte(o.Value)}
	case Draw:
		return &expr.Numgen{Register: nftRegister(o.Into), Modulus: o.Of, Type: unix.NFT_NG_RANDOM}
	case Count:
		return &expr.Numgen{Register: nftRegister(o.Into), Modulus: o.Of, Type: unix.NFT_NG_INCREMENTAL}
	case Hash:
		return &expr.Hash{
			SourceRegister: nftRegister(o.From), DestRegister: nftRegister(o.Into), Length: o.Bytes, Modulus: o.Of,
			Seed: hashSeed, Type: expr.HashTypeJenkins,
		}
	case Mask:
		return &expr.Bitwise{
			SourceRegister: nftRegister(o.In), DestRegister: nftRegister(o.In), Len: uint32(len(o.Bits)),
			Mask: []byte(o.Bits), Xor: make([]byte, len(o.Bits)),
		}
	case Match:
		op := expr.CmpOpEq
		if o.Not {
			op = expr.CmpOpNeq
		}
		return &expr.Cmp{Op: op, Register: nftRegister(o.Register), Data: []byte(o.Value)}
	case Member:
		return &expr.Lookup{SourceRegister: nftRegister(o.Key), SetName: o.Set}
	case Get:
		return &expr.Lookup{SourceRegister: nftRegister(o.Key), DestRegister: nftRegister(o.Into), IsDestRegSet: true, SetName: o.Map}
	case Branch:
		return &expr.Lookup{SourceRegister: nftRegister(o.Key), DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: o.Map}
	case Remember:
		return &expr.Dynset{
			SrcRegKey: nftRegister(o.Key), SetName: o.Set, Operation: uint32(unix.NFT_DYNSET_OP_UPDATE), Timeout: o.For,
		}
	}
	return encodeEnd(op)
}

// encodeEnd encodes the steps that end a walk.
func encodeEnd(op Op) expr.Any {
	switch o := op.(type) {
	case Translate:
		return &expr.NAT{
			Type: expr.NATTypeDestNAT, Family: uint32(o.Family),
			RegAddrMin: nftRegister(o.Address), RegProtoMin: nftRegister(o.Port),
		}
	case Masquerade:
		return &expr.Masq{FullyRandom: true}
	case Refuse:
		if o.Reset {
			return &expr.Reject{Type: unix.NFT_REJECT_TCP_RST}
		}
		return &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}
	case Tally:
		return &expr.Counter{}
	case Verdict:
		return encodeVerdict(o.Is)
	}
	panic(fmt.Sprintf("nat: no encoding for %T", op)) // a step was added to op.go, but not here
}

func encodeLoad(l Load) expr.Any {
	if p, ok := payloads[l.Field]; ok {
		p.OperationType, p.DestRegister = expr.PayloadLoad, nftRegister(l.Into)
		return &p
	}
	if key, ok := metas[l.Field]; ok {
		return &expr.Meta{Key: key, Register: nftRegister(l.Into)}
	}
	switch l.Field {
	case DestinationType:
		return &expr.Fib{FlagDADDR: true, ResultADDRTYPE: true, Register: nftRegister(l.Into)}
	case SourceType:
		return &expr.Fib{FlagSADDR: true, ResultADDRTYPE: true, Register: nftRegister(l.Into)}
	}
	return &expr.Ct{Key: expr.CtKeySTATUS, Register: nftRegister(l.Into)}
}

func encodeVerdict(is string) *expr.Verdict {
	switch {
	case is == VerdictReturn:
		return &expr.Verdict{Kind: expr.VerdictReturn}
	case is == VerdictDrop:
		return &expr.Verdict{Kind: expr.VerdictDrop}
	case strings.HasPrefix(is, goToPrefix):
		return &expr.Verdict{Kind: expr.VerdictGoto, Chain: is[len(goToPrefix):]}
	}
	return &expr.Verdict{Kind: expr.VerdictJump, Chain: is[len(callPrefix):]}
}

var setTypes = map[Type]nftables.SetDatatype{
	Address4: nftables.TypeIPAddr, Address6: nftables.TypeIP6Addr,
	ProtocolNumber: nftables.TypeInetProto, PortNumber: nftables.TypeInetService, Word: nftables.TypeMark,
}

func encodeType(parts []Type) nftables.SetDatatype {
	var types []nftables.SetDatatype
	for _, t := range parts {
		types = append(types, setTypes[t])
	}
	if len(types) == 1 {
		return types[0]
	}
	return nftables.MustConcatSetType(types...) // at most five parts: layout.go
}

func encodeSet(table *nftables.Table, s Set) *nftables.Set {
	out := &nftables.Set{
		Table: table, Name: s.Name, KeyType: encodeType(s.Key), KeyByteOrder: binaryutil.BigEndian,
		Interval: s.Interval, IsMap: s.Verdict || len(s.Data) > 0, Dynamic: s.Dynamic, HasTimeout: s.Dynamic, Size: s.Size,
	}
	if s.Verdict {
		out.DataType = nftables.TypeVerdict
	} else if len(s.Data) > 0 {
		out.DataType = encodeType(s.Data)
	}
	return out
}

// encodeElement writes an element; without its data if it shall only be found.
func encodeElement(e Element, verdict, withData bool) nftables.SetElement {
	out := nftables.SetElement{Key: []byte(e.Key), IntervalEnd: e.Data == intervalEnd}
	if !withData || out.IntervalEnd || e.Data == "" {
		return out
	}
	if verdict {
		out.VerdictData = encodeVerdict(e.Data)
	} else {
		out.Val = []byte(e.Data)
	}
	return out
}
