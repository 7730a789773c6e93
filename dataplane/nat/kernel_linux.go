// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Bounds of a transaction, which is one message for the kernel.
const (
	// writeBytes is enough for the elements of about 500,000 endpoints. It is a bound, nothing is set aside for it.
	writeBytes = 128 << 20
	// readBytes holds the answers to all parts of a transaction.
	readBytes = 64 << 20
	// elementsPerMessage keeps a list of elements below the 64 KiB that a netlink attribute can hold.
	elementsPerMessage = 400
	// elementsPerTransaction is what the kernel is told of a new table at once: enough that transactions do not count, and little beside
	// all that there may be.
	elementsPerTransaction = 20_000
	// kernelTimeout is longer than the largest transaction, or reading it back, takes on a busy node.
	kernelTimeout = 2 * time.Minute
)

// kernel reads and writes the table. Its methods are for one goroutine, but owns.
type kernel struct {
	conn   *nftables.Conn
	socket *netlink.Conn
	table  *nftables.Table
	netns  int // file descriptor, 0 for our own
	// nodePorts are ranges of this node's addresses where node ports are served.
	nodePorts []netip.Prefix
	// connections are those that Loads counted last; nil if none were.
	connections map[uint32]bool

	mu    sync.Mutex
	ports map[uint32]bool // netlink ports that we write from, or did
}

// newKernel is for the table of a name, or our own.
func newKernel(netNS int, table string) *kernel {
	return &kernel{
		netns: netNS,
		table: &nftables.Table{Name: cmp.Or(table, TableName), Family: nftables.TableFamilyINet},
		ports: map[uint32]bool{},
	}
}

// owns tells whether a change that was made from a netlink port was ours.
func (k *kernel) owns(port uint32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ports[port]
}

// open makes the connection if there is none.
func (k *kernel) open(ctx context.Context) error {
	if k.conn == nil {
		conn, err := nftables.New(nftables.AsLasting(), nftables.WithNetNSFd(k.netns), nftables.WithSockOptions(k.prepare))
		if err != nil {
			return explain("reach nftables", err)
		}
		k.conn = conn
	}
	deadline := time.Now().Add(kernelTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := k.socket.SetDeadline(deadline); err != nil {
		return fmt.Errorf("reach nftables: %w", err)
	}
	return ctx.Err()
}

func (k *kernel) prepare(socket *netlink.Conn) error {
	k.socket = socket
	if err := errors.Join(socket.SetWriteBuffer(writeBytes), socket.SetReadBuffer(readBytes)); err != nil {
		return err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var address unix.Sockaddr
	if controlErr := raw.Control(func(fd uintptr) { address, err = unix.Getsockname(int(fd)) }); controlErr != nil {
		return controlErr
	}
	if err != nil {
		return err
	}
	if own, ok := address.(*unix.SockaddrNetlink); ok {
		k.mu.Lock()
		k.ports[own.Pid] = true
		k.mu.Unlock()
	}
	return nil
}

// close forgets the connection, with what may still be on its way there.
func (k *kernel) close() {
	if k.conn != nil {
		_ = k.conn.CloseLasting() // nothing is lost: transactions are whole or not there
		k.conn = nil
	}
}

// Commit implements Edge.
func (k *kernel) Commit(ctx context.Context, c Change, sets map[string]Set) error {
	before, rest := c.Split()
	for _, one := range []Change{before, rest} {
		if one.Empty() {
			continue
		}
		if err := k.transact(ctx, func() error { return k.write(one, sets) }); err != nil {
			return err
		}
	}
	return nil
}

// Replace implements Edge.
func (k *kernel) Replace(ctx context.Context, r Ruleset, exists bool) error {
	if !exists && r.size() > elementsPerTransaction {
		return k.create(ctx, r)
	}
	return k.transact(ctx, func() error {
		if exists {
			k.conn.DelTable(k.table)
		}
		k.conn.AddTable(k.table)
		return k.write(Diff(newRuleset(), r), r.Sets)
	})
}

// create makes a large table that was not there. Packets enter it in the end, so that it may grow by several transactions, whose
// messages take less memory than those of one.
func (k *kernel) create(ctx context.Context, r Ruleset) error {
	frame, entered := Ruleset{Sets: r.Sets, Chains: map[string]Chain{}}, Change{}
	for name, c := range r.Chains {
		if c.Hook == NoHook {
			frame.Chains[name] = c
		} else {
			entered.AddChains = append(entered.AddChains, c)
		}
	}
	if err := k.transact(ctx, func() error {
		k.conn.AddTable(k.table)
		return k.write(Diff(newRuleset(), frame), r.Sets)
	}); err != nil {
		return err
	}
	some := make([]Element, 0, elementsPerTransaction)
	flush := func() error {
		err := k.transact(ctx, func() error { return k.elements(some, r.Sets, true) })
		some = some[:0]
		return err
	}
	for set, elements := range r.Elements {
		for key, data := range elements {
			if len(some) == cap(some) {
				if err := flush(); err != nil {
					return err
				}
			}
			some = append(some, Element{set, key, data})
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return k.transact(ctx, func() error { return k.write(entered, r.Sets) })
}

// drop removes the table, if it is there.
func (k *kernel) drop(ctx context.Context) error {
	if err := k.open(ctx); err != nil {
		return err
	}
	table, err := k.find()
	if err != nil || table == nil {
		return err
	}
	return k.transact(ctx, func() error {
		k.conn.DelTable(k.table)
		return nil
	})
}

func (k *kernel) transact(ctx context.Context, write func() error) error {
	if err := k.open(ctx); err != nil {
		k.close()
		return err
	}
	err := write()
	if err == nil {
		err = k.conn.Flush()
	}
	if err != nil {
		k.close()
		return explain("change table inet "+k.table.Name, err)
	}
	return nil
}

// write collects the messages of a change.
func (k *kernel) write(c Change, sets map[string]Set) error {
	for i, s := range c.AddSets {
		set := encodeSet(k.table, s)
		set.ID = uint32(i + 1) // the library's own numbers are counted without a lock, for all connections
		if err := k.conn.AddSet(set, nil); err != nil {
			return err
		}
	}
	for _, chain := range c.AddChains {
		k.conn.AddChain(k.chain(chain))
	}
	for _, chain := range c.AddChains {
		k.fill(chain)
	}
	for _, chain := range c.Refill {
		k.conn.FlushChain(k.chain(chain))
		k.fill(chain)
	}
	if err := k.elements(c.Remove, sets, false); err != nil {
		return err
	}
	if err := k.elements(c.Add, sets, true); err != nil {
		return err
	}
	for _, name := range c.DropSets {
		if sets[name].Size == foreign { // its elements were not read, and may be verdicts that name chains which go
			k.conn.FlushSet(&nftables.Set{Table: k.table, Name: name})
		}
	}
	for _, name := range c.DropChains {
		k.conn.FlushChain(&nftables.Chain{Table: k.table, Name: name})
	}
	for _, name := range c.DropChains {
		k.conn.DelChain(&nftables.Chain{Table: k.table, Name: name})
	}
	for _, name := range c.DropSets {
		k.conn.DelSet(&nftables.Set{Table: k.table, Name: name})
	}
	return nil
}

func (k *kernel) chain(c Chain) *nftables.Chain {
	out := &nftables.Chain{Table: k.table, Name: c.Name}
	if c.Hook != NoHook {
		hook, accept := hooks[c.Hook], nftables.ChainPolicyAccept
		out.Hooknum, out.Priority = hook, nftables.ChainPriorityRef(nftables.ChainPriority(c.Priority))
		out.Type, out.Policy = nftables.ChainTypeNAT, &accept
	}
	return out
}

var hooks = map[Hook]*nftables.ChainHook{
	Prerouting: nftables.ChainHookPrerouting, Output: nftables.ChainHookOutput, Postrouting: nftables.ChainHookPostrouting,
}

func (k *kernel) fill(c Chain) {
	for i, r := range c.Rules {
		k.conn.AddRule(&nftables.Rule{
			Table: k.table, Chain: &nftables.Chain{Table: k.table, Name: c.Name}, Exprs: encodeRule(r),
			UserData: userdata.AppendString(nil, userdata.TypeComment, c.Tags[i]),
		})
	}
}

// elements adds or removes elements, which are in order of their sets.
func (k *kernel) elements(all []Element, sets map[string]Set, add bool) error {
	for len(all) > 0 {
		set := all[0].Set
		n := slices.IndexFunc(all, func(e Element) bool { return e.Set != set })
		if n < 0 {
			n = len(all)
		}
		for chunk := range slices.Chunk(all[:n], elementsPerMessage) {
			if err := k.chunk(encodeSet(k.table, sets[set]), chunk, sets[set].Verdict, add); err != nil {
				return err
			}
		}
		all = all[n:]
	}
	return nil
}

func (k *kernel) chunk(set *nftables.Set, elements []Element, verdict, add bool) error {
	var encoded []nftables.SetElement
	for _, e := range elements {
		encoded = append(encoded, encodeElement(e, verdict, add))
	}
	if add {
		return k.conn.SetAddElements(set, encoded)
	}
	return k.conn.SetDeleteElements(set, encoded)
}

// explain tells an error of the kernel with what can be done about it.
func explain(what string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w (the agent needs CAP_NET_ADMIN)", what, err)
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%s: %w (needs a kernel of 5.9 or later with nf_tables and its NAT; else leave NAT to kube-proxy)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
