// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// foreign is in the place of a property that a table of ours never has, so that it is Compatible with none.
const foreign = 255

// Read implements Edge.
func (k *kernel) Read(ctx context.Context, want Ruleset) (r Ruleset, exists bool, err error) {
	r = newRuleset()
	if err := k.open(ctx); err != nil {
		k.close()
		return r, false, err
	}
	defer func() {
		if err != nil {
			k.close()
			err = explain("read table inet "+k.table.Name, err)
		}
	}()
	table, err := k.find()
	if err != nil || table == nil {
		return r, false, err
	}
	if err := k.readChains(r, table.Flags != 0); err != nil {
		return r, true, err
	}
	return r, true, k.readSets(ctx, r, want)
}

// find gives our table, nil if there is none.
func (k *kernel) find() (*nftables.Table, error) {
	tables, err := k.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if t.Name == k.table.Name {
			return t, nil
		}
	}
	return nil, nil
}

// readChains reads chains and the tags of their rules. A table with a flag, such as dormant, is not as we made it.
func (k *kernel) readChains(r Ruleset, flagged bool) error {
	chains, err := k.conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return err
	}
	tags, err := k.readTags()
	if err != nil {
		return err
	}
	for _, c := range chains {
		if c.Table.Name != k.table.Name {
			continue
		}
		out := Chain{Name: c.Name, Hook: hookOf(c), Tags: tags[c.Name]}
		if c.Priority != nil {
			out.Priority = int32(*c.Priority)
		}
		if flagged {
			out.Hook = foreign
		}
		r.add(out)
	}
	return nil
}

// readTags reads the tags of all rules, by chain. The library would decode the rules' steps, too, which are of no use
// here, and fails at those that look at a connection's direction.
func (k *kernel) readTags() (map[string][]string, error) {
	table, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_RULE_TABLE, Data: []byte(k.table.Name + "\x00")},
	})
	if err != nil {
		return nil, err
	}
	answers, err := k.socket.Execute(netlink.Message{
		Header: netlink.Header{
			Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE, Flags: netlink.Request | netlink.Dump,
		},
		Data: append([]byte{unix.NFPROTO_INET, unix.NFNETLINK_V0, 0, 0}, table...),
	})
	if err != nil {
		return nil, err
	}
	tags := map[string][]string{}
	for _, m := range answers {
		attributes, err := netlink.NewAttributeDecoder(m.Data[familyBytes:])
		if err != nil {
			return nil, err
		}
		var chain, tag string
		for attributes.Next() {
			switch attributes.Type() {
			case unix.NFTA_RULE_CHAIN:
				chain = attributes.String()
			case unix.NFTA_RULE_USERDATA:
				tag, _ = userdata.GetString(attributes.Bytes(), userdata.TypeComment)
			}
		}
		if err := attributes.Err(); err != nil {
			return nil, err
		}
		tags[chain] = append(tags[chain], tag)
	}
	return tags, nil
}

// familyBytes is the length of what precedes a message's attributes: family, version and resource (nfgenmsg).
const familyBytes = 4

func hookOf(c *nftables.Chain) Hook {
	if c.Hooknum == nil {
		return NoHook
	}
	for hook, number := range hooks {
		if *number == *c.Hooknum && c.Type == nftables.ChainTypeNAT && c.Policy != nil && *c.Policy == nftables.ChainPolicyAccept {
			return hook
		}
	}
	return foreign
}

func (k *kernel) readSets(ctx context.Context, r, want Ruleset) error {
	sets, err := k.conn.GetSets(k.table)
	if err != nil {
		return err
	}
	var read []Set
	for _, s := range sets {
		wanted, ok := want.Sets[s.Name]
		if !ok || !looksLike(s, encodeSet(k.table, wanted)) {
			r.Sets[s.Name] = Set{Name: s.Name, Size: foreign}
			continue
		}
		r.Sets[s.Name] = wanted
		if !wanted.Dynamic {
			read = append(read, wanted)
		}
	}
	return netns.Do(k.netns, func() error {
		for _, s := range read {
			if err := dumpElements(ctx, k.table.Name, s, want.Elements[s.Name], r); err != nil {
				return err
			}
			maps.DeleteFunc(want.Elements[s.Name], func(_, data string) bool { return data == found })
		}
		return nil
	})
}

// looksLike compares what can be read back of a set. The library reads no key type of maps of verdicts.
func looksLike(have, want *nftables.Set) bool {
	same := have.IsMap == want.IsMap && have.Interval == want.Interval && have.Dynamic == want.Dynamic &&
		have.HasTimeout == want.HasTimeout && have.Size == want.Size
	if want.DataType.GetNFTMagic() == nftables.TypeVerdict.GetNFTMagic() {
		return same
	}
	return same && have.KeyType.Bytes == want.KeyType.Bytes && have.DataType.Bytes == want.DataType.Bytes
}

func decodeVerdict(b []byte) (string, error) {
	attributes, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return "", fmt.Errorf("decode verdict: %w", err)
	}
	attributes.ByteOrder = binary.BigEndian
	var kind expr.VerdictKind
	var chain string
	for attributes.Next() {
		switch attributes.Type() {
		case unix.NFTA_VERDICT_CODE:
			kind = expr.VerdictKind(int32(attributes.Uint32()))
		case unix.NFTA_VERDICT_CHAIN:
			chain = strings.TrimRight(attributes.String(), "\x00")
		}
	}
	if err := attributes.Err(); err != nil {
		return "", fmt.Errorf("decode verdict: %w", err)
	}
	switch kind {
	case expr.VerdictGoto:
		return goTo(chain), nil
	case expr.VerdictJump:
		return call(chain), nil
	case expr.VerdictDrop:
		return VerdictDrop, nil
	}
	return fmt.Sprintf("verdict %d", kind), nil
}
