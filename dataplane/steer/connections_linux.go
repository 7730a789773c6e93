// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// Attributes of a connection (linux/netfilter/nfnetlink_conntrack.h).
const (
	ctaTuple    = nl.CTA_TUPLE_ORIG
	ctaMark     = nl.CTA_MARK
	ctaZone     = nl.CTA_ZONE
	ctaMarkMask = 21
)

// Limits of a remarking: connections are renewed in rounds that fit in memory, until a list shows none.
const (
	connectionsInRound = 1 << 16
	roundsMax          = 256
)

// connectionKey names a connection as the kernel does.
type connectionKey struct {
	family      uint8
	tuple, zone []byte
}

// remark gives connections another mark. The rules that would give them the former one have gone already.
func (k *linux) remark(c Remark) error {
	return netns.Do(k.o.Namespace, func() error {
		socket, err := nl.Subscribe(unix.NETLINK_NETFILTER)
		if err != nil {
			return fmt.Errorf("reach conntrack: %w", err)
		}
		defer socket.Close()
		to := map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: {Socket: socket}}
		// The kernel looks for marks that have all bits asked for; a connection may have any.
		for left := c.From; left != 0; left &= left - 1 {
			if err := renewAll(to, 1<<bits.TrailingZeros32(left), c); err != nil {
				return err
			}
		}
		return nil
	})
}

// renewAll renews the connections with a bit.
func renewAll(to map[int]*nl.SocketHandle, bit uint32, c Remark) error {
	if bit&c.To != 0 {
		return nil // whatever has it counts as marked
	}
	for range roundsMax {
		found, err := marked(bit)
		if err != nil {
			return fmt.Errorf("list connections: %w", err)
		}
		if len(found) == 0 {
			return nil
		}
		for _, key := range found {
			if err := renew(to, key, c); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("mark a connection: %w", err)
			}
		}
	}
	return fmt.Errorf("connections with mark %#x come back; find out who marks them", bit)
}

func conntrackRequest(kind, flags int, family uint8, mark, mask uint32) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|kind, flags)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family})
	req.AddData(nl.NewRtAttr(ctaMark, nl.BEUint32Attr(mark)))
	req.AddData(nl.NewRtAttr(ctaMarkMask, nl.BEUint32Attr(mask)))
	return req
}

// marked lists connections with a bit, as many as fit in a round.
func marked(bit uint32) (found []connectionKey, err error) {
	req := conntrackRequest(nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP, unix.AF_UNSPEC, bit, bit)
	err = again(func() error {
		found = found[:0]
		var wrong error
		err := req.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(m []byte) bool {
			var key connectionKey
			if key, wrong = parseConnection(m); wrong == nil {
				found = append(found, key)
			}
			return wrong == nil && len(found) < connectionsInRound
		})
		return errors.Join(err, wrong)
	})
	return found, err
}

func parseConnection(m []byte) (key connectionKey, err error) {
	ad, err := netlink.NewAttributeDecoder(m[nl.SizeofNfgenmsg:])
	if err != nil {
		return key, err
	}
	key.family = m[0] // struct nfgenmsg begins with it
	for ad.Next() {
		switch ad.Type() {
		case ctaTuple:
			key.tuple = bytes.Clone(ad.Bytes())
		case ctaZone:
			key.zone = bytes.Clone(ad.Bytes())
		}
	}
	return key, ad.Err()
}

// renew marks one connection; ENOENT says that it has ended.
func renew(to map[int]*nl.SocketHandle, key connectionKey, c Remark) error {
	req := conntrackRequest(nl.IPCTNL_MSG_CT_NEW, unix.NLM_F_ACK, key.family, c.To, c.From|c.To)
	req.AddData(nl.NewRtAttr(ctaTuple|unix.NLA_F_NESTED, key.tuple))
	if key.zone != nil {
		req.AddData(nl.NewRtAttr(ctaZone, key.zone))
	}
	req.Sockets = to
	_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	return err
}
