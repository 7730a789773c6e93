// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"errors"
	"fmt"

	mdlayher "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// found is in the place of the data of a wanted element that is in the table. It is marked, not taken out: a dump may tell of an
// element twice, while the kernel makes its table larger.
const found = "\x00found"

// dumpElements reads the elements of a set, of the network namespace that the thread is in, one message of the kernel's after the other:
// those that are as wanted are marked there, and the others are put into have. A hundred thousand elements are held twice otherwise.
func dumpElements(ctx context.Context, table string, set Set, wanted map[string]string, have Ruleset) error {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_INET, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(unix.NFTA_SET_ELEM_LIST_TABLE, nl.ZeroTerminated(table)))
	req.AddData(nl.NewRtAttr(unix.NFTA_SET_ELEM_LIST_SET, nl.ZeroTerminated(set.Name)))
	var failed error
	err := req.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(message []byte) bool {
		failed = eachElement(message, func(key, value, verdict []byte, end bool) error {
			data := string(value)
			switch {
			case end:
				data = intervalEnd
			case set.Verdict:
				var err error
				if data, err = decodeVerdict(verdict); err != nil {
					return err
				}
			}
			sift(set.Name, key, data, wanted, have)
			return nil
		})
		if failed == nil {
			failed = ctx.Err()
		}
		return failed == nil
	})
	if errors.Is(err, nl.ErrDumpInterrupted) {
		err = nil // somebody changed something, which Watch tells of
	}
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("elements of %s: %w", set.Name, err)
	}
	return nil
}

// sift marks an element that is as wanted, and puts another one into have.
func sift(set string, key []byte, data string, wanted map[string]string, have Ruleset) {
	switch want, ok := wanted[string(key)]; {
	case ok && want == found:
	case ok && want == data:
		wanted[string(key)] = found
	default:
		have.put([]Element{{set, string(key), data}})
	}
}

// eachElement calls each with the elements in a message of a dump (linux/netfilter/nf_tables.h).
func eachElement(message []byte, each func(key, value, verdict []byte, end bool) error) error {
	if len(message) < familyBytes {
		return errors.New("a message without a header")
	}
	return nested(message[familyBytes:], func(kind uint16, list []byte) error {
		if kind != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			return nil
		}
		return nested(list, func(_ uint16, element []byte) error {
			var key, value, verdict []byte
			end := false
			err := nested(element, func(kind uint16, data []byte) error {
				switch kind {
				case unix.NFTA_SET_ELEM_KEY:
					return nested(data, func(_ uint16, bytes []byte) error { key = bytes; return nil })
				case unix.NFTA_SET_ELEM_DATA:
					return nested(data, func(kind uint16, bytes []byte) error {
						if kind == unix.NFTA_DATA_VERDICT {
							verdict = bytes
						} else {
							value = bytes
						}
						return nil
					})
				case unix.NFTA_SET_ELEM_FLAGS:
					end = len(data) == 4 && data[3]&unix.NFT_SET_ELEM_INTERVAL_END != 0
				}
				return nil
			})
			if err != nil {
				return err
			}
			return each(key, value, verdict, end)
		})
	})
}

// nested calls each with the attributes in data.
func nested(data []byte, each func(kind uint16, value []byte) error) error {
	attributes, err := mdlayher.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	for attributes.Next() {
		if err := each(attributes.Type(), attributes.Bytes()); err != nil {
			return err
		}
	}
	return attributes.Err()
}
