// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netns"
)

// filter is our nftables table.
type filter struct {
	netns int // as Options.Namespace
	table *nftables.Table
	sets  map[Set]*nftables.Set
	conn  *nftables.Conn
	port  atomic.Uint32 // by which the kernel tells whose a change was
}

// Limits of one transaction: its messages go to the kernel in one call, and an attribute holds 64 KiB.
const (
	filterBuffer      = 32 << 20
	elementsInMessage = 512
)

func openFilter(o Options) (*filter, error) {
	t := &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}
	f := &filter{netns: o.Namespace, table: t, sets: map[Set]*nftables.Set{}}
	for i, s := range []struct {
		name  Set
		of    nftables.SetDatatype
		order binaryutil.ByteOrder // for who lists the table
	}{
		{SetAddresses4, nftables.TypeIPAddr, binaryutil.BigEndian},
		{SetAddresses6, nftables.TypeIP6Addr, binaryutil.BigEndian},
		{SetPorts4, nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService), binaryutil.BigEndian},
		{SetPorts6, nftables.MustConcatSetType(nftables.TypeIP6Addr, nftables.TypeInetProto, nftables.TypeInetService), binaryutil.BigEndian},
		{SetInterfaces, nftables.TypeIFName, binaryutil.NativeEndian},
	} {
		f.sets[s.name] = &nftables.Set{
			Table: t, ID: uint32(i + 1), Name: string(s.name), KeyType: s.of, KeyByteOrder: s.order, Concatenation: strings.HasPrefix(string(s.name), "ports"),
		}
	}
	return f, f.open()
}

// open makes the connection. It is made anew after an error, which may leave answers behind.
func (f *filter) open() (err error) {
	f.conn, err = nftables.New(nftables.AsLasting(), nftables.WithNetNSFd(f.netns), nftables.WithSockOptions(f.prepare))
	if err != nil {
		return fmt.Errorf("reach nftables: %w", err)
	}
	return nil
}

// prepare sets a socket up and learns its number.
func (f *filter) prepare(c *netlink.Conn) error {
	// Without the right to larger buffers, large changes fail and say so.
	_ = c.SetWriteBuffer(filterBuffer)
	_ = c.SetReadBuffer(filterBuffer)
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var name unix.Sockaddr
	if err := errors.Join(raw.Control(func(fd uintptr) { name, err = unix.Getsockname(int(fd)) }), err); err != nil {
		return err
	}
	if a, ok := name.(*unix.SockaddrNetlink); ok {
		f.port.Store(a.Pid)
	}
	return nil
}

func (f *filter) close() { _ = f.conn.CloseLasting() } // nothing waits for it

// flush carries the transaction out.
func (f *filter) flush() error {
	err := f.conn.Flush()
	if err != nil {
		f.close()
		err = errors.Join(err, f.open())
	}
	return err
}

// edit makes a change in one transaction.
func (f *filter) edit(c EditFilter) error {
	if c.Reset {
		f.conn.AddTable(f.table)
		f.conn.DelTable(f.table)
		f.conn.AddTable(f.table)
		for i, name := range f.names() {
			f.sets[name].ID = uint32(i + 1) // the library's own numbers are counted without a lock, for all connections
			if err := f.conn.AddSet(f.sets[name], nil); err != nil {
				return err
			}
		}
		if err := f.addRules(c.Filter); err != nil {
			return err
		}
	}
	if err := f.elements(c.Remove, f.conn.SetDeleteElements); err != nil {
		return err
	}
	if err := f.elements(c.Add, f.conn.SetAddElements); err != nil {
		return err
	}
	return f.flush()
}

func (f *filter) names() []Set {
	return []Set{SetAddresses4, SetAddresses6, SetPorts4, SetPorts6, SetInterfaces}
}

// elements hands elements, which are sorted by set, to a call in pieces.
func (f *filter) elements(all List[Element], call func(*nftables.Set, []nftables.SetElement) error) error {
	var of Set
	piece := make([]nftables.SetElement, 0, min(all.Len(), elementsInMessage))
	hand := func() error {
		if len(piece) == 0 {
			return nil
		}
		defer func() { piece = piece[:0] }() // what was called has encoded it
		return call(f.sets[of], piece)
	}
	for e := range all.All() {
		if e.Set != of || len(piece) == elementsInMessage {
			if err := hand(); err != nil {
				return err
			}
			of = e.Set
		}
		piece = append(piece, nftables.SetElement{Key: keyOf(e)})
	}
	return hand()
}

// addRules adds chains and rules. Each rule says in its comment of which Filter it is.
func (f *filter) addRules(id string) error {
	m, ok := marksOf(id)
	if !ok {
		return fmt.Errorf("no rules are named %q", id)
	}
	for _, c := range chains(m) {
		c.chain.Table = f.table
		f.conn.AddChain(c.chain)
	}
	for _, c := range chains(m) {
		c.chain.Table = f.table
		for _, r := range c.rules {
			f.conn.AddRule(&nftables.Rule{
				Table: f.table, Chain: c.chain, Exprs: r, UserData: userdata.AppendString(nil, userdata.TypeComment, id),
			})
		}
	}
	return nil
}

func (f *filter) drop() error {
	f.conn.AddTable(f.table)
	f.conn.DelTable(f.table)
	return f.flush()
}

// damagedFilter is the Filter of a table whose rules are not those of any.
const damagedFilter = "damaged"

// read reads our table.
func (f *filter) read(v *View) error {
	id, err := f.readRules()
	if err != nil || id == "" {
		return err
	}
	v.Filter = id
	for _, name := range f.names() {
		found, err := f.readSet(name)
		if err != nil {
			v.Filter = damagedFilter
			continue
		}
		v.Elements.put(found)
	}
	return nil
}

// readSet reads the elements of a set of our table, one message of the kernel after the other: there may be hundreds of thousands.
func (f *filter) readSet(name Set) (found Lot[Element], err error) {
	err = f.dump(unix.NFT_MSG_GETSETELEM, unix.NFT_MSG_NEWSETELEM, []*nl.RtAttr{
		nl.NewRtAttr(unix.NFTA_SET_ELEM_LIST_TABLE, nl.ZeroTerminated(TableName)),
		nl.NewRtAttr(unix.NFTA_SET_ELEM_LIST_SET, nl.ZeroTerminated(string(name))),
	}, func() { found = Lot[Element]{} }, func(m []byte) error {
		return eachKey(m[nl.SizeofNfgenmsg:], func(key []byte) {
			if e, ok := elementOf(name, key); ok {
				found.Add(e)
			}
		})
	})
	if errors.Is(err, nl.ErrDumpInterrupted) {
		// Any table's change interrupts. Those of ours are heard of, and have it read again.
		err = nil
	}
	return found, err
}

// eachKey reads the keys of elements, as the kernel lists them.
func eachKey(message []byte, take func(key []byte)) error {
	return nested(message, unix.NFTA_SET_ELEM_LIST_ELEMENTS, func(list []byte) error {
		return nested(list, unix.NFTA_LIST_ELEM, func(element []byte) error {
			return nested(element, unix.NFTA_SET_ELEM_KEY, func(data []byte) error {
				return nested(data, unix.NFTA_DATA_VALUE, func(key []byte) error {
					take(key)
					return nil
				})
			})
		})
	})
}

// nested reads the attributes of a type.
func nested(attributes []byte, kind uint16, take func([]byte) error) error {
	ad, err := netlink.NewAttributeDecoder(attributes)
	if err != nil {
		return err
	}
	for ad.Next() {
		if ad.Type() == kind {
			if err := take(ad.Bytes()); err != nil {
				return err
			}
		}
	}
	return ad.Err()
}

// dump takes what our table has of a kind, one message after the other. It begins anew, with begin, when that changed
// meanwhile. What take could not read is its error.
func (f *filter) dump(request, answer int, about []*nl.RtAttr, begin func(), take func(message []byte) error) error {
	const subsystem = unix.NFNL_SUBSYS_NFTABLES << 8
	return netns.Do(f.netns, func() error {
		return again(func() error {
			begin()
			req := nl.NewNetlinkRequest(subsystem|request, unix.NLM_F_DUMP)
			req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_INET})
			for _, a := range about {
				req.AddData(a)
			}
			var bad error
			err := req.ExecuteIter(unix.NETLINK_NETFILTER, uint16(subsystem|answer), func(m []byte) bool {
				bad = take(m)
				return bad == nil
			})
			return cmp.Or(err, bad)
		})
	})
}

// readRules tells which rules our table has: the id that all of them bear, if there are as many as there should be.
func (f *filter) readRules() (id string, err error) {
	have, ids := map[string]int{}, map[string]bool{}
	err = f.dump(unix.NFT_MSG_GETRULE, unix.NFT_MSG_NEWRULE, []*nl.RtAttr{
		nl.NewRtAttr(unix.NFTA_RULE_TABLE, nl.ZeroTerminated(TableName)),
	}, func() { clear(have); clear(ids) }, func(m []byte) error {
		chain, comment := chainAndComment(m)
		have[chain]++
		ids[comment] = true
		return nil
	})
	switch {
	case errors.Is(err, unix.ENOENT) || err == nil && len(have) == 0:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("list nftables rules: %w", err)
	}
	for one := range ids {
		id = one
	}
	m, ok := marksOf(id)
	if len(ids) != 1 || !ok {
		return damagedFilter, nil
	}
	want := map[string]int{}
	for _, c := range chains(m) {
		want[c.chain.Name] = len(c.rules)
	}
	if !maps.Equal(have, want) {
		return damagedFilter, nil
	}
	return id, nil
}

// chainAndComment reads two attributes of a rule, as the kernel tells it.
func chainAndComment(rule []byte) (chain, comment string) {
	ad, err := netlink.NewAttributeDecoder(rule[nl.SizeofNfgenmsg:])
	if err != nil {
		return "", ""
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_RULE_CHAIN:
			chain = ad.String()
		case unix.NFTA_RULE_USERDATA:
			comment, _ = userdata.GetString(ad.Bytes(), userdata.TypeComment)
		}
	}
	return chain, comment
}

// keyOf encodes an element as the kernel has it: each part in whole registers.
func keyOf(e Element) []byte {
	switch e.Set {
	case SetAddresses4, SetAddresses6:
		return e.Address.AsSlice()
	case SetPorts4, SetPorts6:
		key := append(e.Address.AsSlice(), e.Port.Protocol, 0, 0, 0)
		return append(append(key, binaryutil.BigEndian.PutUint16(e.Port.Number)...), 0, 0)
	}
	return interfaceKey(e.Interface)
}

func interfaceKey(name string) []byte {
	key := make([]byte, unix.IFNAMSIZ)
	copy(key, name)
	return key
}

func elementOf(set Set, key []byte) (e Element, ok bool) {
	switch set {
	case SetAddresses4, SetAddresses6:
		e.Address, ok = netip.AddrFromSlice(key)
		return AddressElement(e.Address), ok
	case SetPorts4, SetPorts6:
		if len(key) < 8 {
			return e, false
		}
		rest := key[len(key)-8:]
		e.Address, ok = netip.AddrFromSlice(key[:len(key)-8])
		return PortElement(e.Address, desired.Port{Protocol: rest[0], Number: binaryutil.BigEndian.Uint16(rest[4:6])}), ok
	}
	name, _, _ := strings.Cut(string(key), "\x00")
	return Element{Set: set, Interface: name}, true
}
