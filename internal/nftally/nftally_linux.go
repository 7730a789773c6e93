// SPDX-License-Identifier: Apache-2.0

package nftally

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// setCount is an attribute of a set that the library's constants end before: NFTA_SET_COUNT.
const setCount = 20

// Packets gives how many packets the rules of each chain counted, of a table of family inet. A chain without rules is not in
// the answer. netNS is a file descriptor of a network namespace, 0 for the process's own.
//
// Errors: what the kernel refuses.
func Packets(netNS int, table string, chains []string) (map[string]uint64, error) {
	out := map[string]uint64{}
	for _, chain := range chains {
		err := dump(netNS, unix.NFT_MSG_GETRULE, unix.NFT_MSG_NEWRULE, func(rule []byte) error {
			n, err := packetsOf(rule)
			out[chain] += n
			return err
		}, nl.NewRtAttr(unix.NFTA_RULE_TABLE, nl.ZeroTerminated(table)), nl.NewRtAttr(unix.NFTA_RULE_CHAIN, nl.ZeroTerminated(chain)))
		if err != nil {
			return nil, fmt.Errorf("read counters of table inet %s: %w", table, err)
		}
	}
	return out, nil
}

// packetsOf adds up the counters of a rule.
func packetsOf(rule []byte) (sum uint64, err error) {
	var expression string
	count := func(a *netlink.AttributeDecoder) error {
		if a.Type() == unix.NFTA_COUNTER_PACKETS {
			sum += a.Uint64()
		}
		return nil
	}
	step := func(a *netlink.AttributeDecoder) error {
		switch {
		case a.Type() == unix.NFTA_EXPR_NAME:
			expression = a.String()
		case a.Type() == unix.NFTA_EXPR_DATA && expression == "counter":
			return each(a.Bytes(), count)
		}
		return nil
	}
	err = each(rule, func(a *netlink.AttributeDecoder) error {
		if a.Type() != unix.NFTA_RULE_EXPRESSIONS {
			return nil
		}
		return each(a.Bytes(), func(a *netlink.AttributeDecoder) error { return each(a.Bytes(), step) })
	})
	return sum, err
}

// Elements gives how many elements sets of a table hold. A kernel that counts them (6.16 and later) is asked once, and tells
// of all sets. Of others elements are listed, of one set after the other, until there were most in all: the first set is
// always looked at, later ones may be left out of the answer, and are for the next look. A set that is not there has none.
//
// Errors: what the kernel refuses.
func Elements(netNS int, table string, sets []string, most int) (map[string]int, error) {
	counted, err := counts(netNS, table)
	out := map[string]int{}
	for _, set := range sets {
		if counted != nil || err != nil {
			out[set] = counted[set]
			continue
		}
		if out[set], err = Listed(netNS, table, set); err != nil {
			break
		}
		if most -= out[set]; most <= 0 {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("count elements of table inet %s: %w", table, err)
	}
	return out, nil
}

// counts are what the kernel says that the sets of a table hold; nil if it does not say.
func counts(netNS int, table string) (out map[string]int, err error) {
	err = dump(netNS, unix.NFT_MSG_GETSET, unix.NFT_MSG_NEWSET, func(set []byte) error {
		var name string
		return each(set, func(a *netlink.AttributeDecoder) error {
			switch a.Type() {
			case unix.NFTA_SET_NAME:
				name = a.String()
			case setCount:
				if out == nil {
					out = map[string]int{}
				}
				out[name] = int(a.Uint32())
			}
			return nil
		})
	}, nl.NewRtAttr(unix.NFTA_SET_TABLE, nl.ZeroTerminated(table)))
	return out, err
}

// Listed counts the elements of a set by listing them, one message of the kernel after the other.
func Listed(netNS int, table, set string) (n int, err error) {
	element := func(*netlink.AttributeDecoder) error {
		n++
		return nil
	}
	err = dump(netNS, unix.NFT_MSG_GETSETELEM, unix.NFT_MSG_NEWSETELEM, func(message []byte) error {
		return each(message, func(a *netlink.AttributeDecoder) error {
			if a.Type() != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
				return nil
			}
			return each(a.Bytes(), element)
		})
	}, nl.NewRtAttr(unix.NFTA_SET_ELEM_LIST_TABLE, nl.ZeroTerminated(table)), nl.NewRtAttr(unix.NFTA_SET_ELEM_LIST_SET, nl.ZeroTerminated(set)))
	return n, err
}

// dump asks for a list, by a connection of its own: a look may come at any time. It hands on the attributes of each message.
// What is not there is an empty list, and a change meanwhile is no reason to begin anew, since counts change anyway.
func dump(netNS int, request, answer int, take func(attributes []byte) error, about ...*nl.RtAttr) error {
	const subsystem = unix.NFNL_SUBSYS_NFTABLES << 8
	err := netns.Do(netNS, func() error {
		req := nl.NewNetlinkRequest(subsystem|request, unix.NLM_F_DUMP)
		req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_INET})
		for _, a := range about {
			req.AddData(a)
		}
		var bad error
		err := req.ExecuteIter(unix.NETLINK_NETFILTER, uint16(subsystem|answer), func(m []byte) bool {
			bad = take(m[nl.SizeofNfgenmsg:])
			return bad == nil
		})
		return cmp.Or(bad, err)
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, nl.ErrDumpInterrupted) {
		return nil
	}
	return err
}

// each calls a function for each attribute, numbers in network order.
func each(attributes []byte, take func(*netlink.AttributeDecoder) error) error {
	ad, err := netlink.NewAttributeDecoder(attributes)
	if err != nil {
		return err
	}
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		if err := take(ad); err != nil {
			return err
		}
	}
	return ad.Err()
}
