// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// linux is the edge on Linux: netlink, nftables and /proc/sys. One goroutine at a time uses it.
type linux struct {
	o       Options
	netlink *netlink.Handle
	filter  *filter
	memory  memory

	mu      sync.Mutex     // of what follows: watch uses it too
	names   map[int]string // of interfaces
	indexes map[string]int
	facing  map[string]bool // the interfaces that matter
	q       Query
	tables  map[uint32]bool // that others' rules lead to
}

func openEdge(o Options) (Edge, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("steer: boot id: %w", err)
	}
	m, err := loadMemory(o.Folder, strings.TrimSpace(string(boot)))
	if err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	k := &linux{o: o, memory: m}
	err = netns.Do(o.Namespace, func() (err error) {
		k.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("steer: netlink: %w", err)
	}
	if k.filter, err = openFilter(o); err != nil {
		k.netlink.Close()
		return nil, fmt.Errorf("steer: %w", remedy(err))
	}
	return k, nil
}

// Close implements Edge.
func (k *linux) Close() {
	k.netlink.Close()
	k.filter.close()
}

// Hopeless implements Edge.
func (*linux) Hopeless(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.EROFS, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// remedy says what an operator can do about an error.
func remedy(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w; run the agent as root or give it CAP_NET_ADMIN, and let it write /proc/sys/net", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w; a container needs the host's /proc/sys/net mounted where it may write, and sysNet to name that place", err)
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w; this kernel lacks nftables (Linux 5.9 or newer with nf_tables, nft_fib, nft_reject, nft_redir, nft_socket and nf_conntrack_netlink is needed)", err)
	}
	return err
}

// Read implements Edge.
func (k *linux) Read(q Query) (*View, Facts, error) {
	v := NewView()
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		if err := k.readRules(family, v); err != nil {
			return nil, Facts{}, remedy(err)
		}
	}
	facts, err := k.Look(q, v)
	if err != nil {
		return nil, Facts{}, err
	}
	tables := q.Tables(v.Rules)
	k.mu.Lock()
	k.tables = tables
	k.mu.Unlock()
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		if err := k.readRoutes(family, q, tables, v); err != nil {
			return nil, Facts{}, remedy(err)
		}
	}
	if err := k.filter.read(v); err != nil {
		return nil, Facts{}, remedy(err)
	}
	return v, facts, nil
}

// dumps is how often a list is asked for that changed while it was told.
const dumps = 5

func again(list func() error) (err error) {
	for range dumps {
		if err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return err
		}
	}
	return err
}

// dump takes what the kernel has of a kind, one by one: there may be tens of thousands. It begins anew, with begin, when
// the list changed while it was told. What take could not read is its error.
func (k *linux) dump(request, answer int, family int, begin func(), take func(message []byte) error) error {
	return netns.Do(k.o.Namespace, func() error {
		return again(func() (err error) {
			begin()
			req := nl.NewNetlinkRequest(request, unix.NLM_F_DUMP)
			req.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: uint8(family)}})
			var bad error
			err = req.ExecuteIter(unix.NETLINK_ROUTE, uint16(answer), func(m []byte) bool {
				bad = take(m)
				return bad == nil
			})
			return cmp.Or(err, bad)
		})
	})
}

func (k *linux) readRules(family int, v *View) error {
	var found Lot[Rule]
	err := k.dump(unix.RTM_GETRULE, unix.RTM_NEWRULE, family, func() { found = Lot[Rule]{} }, func(m []byte) error {
		r, err := parseRule(m)
		if err == nil {
			found.Add(r)
		}
		return err
	})
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil // a kernel without IPv6
	}
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	v.Rules.put(found)
	return nil
}

func (k *linux) readRoutes(family int, q Query, tables map[uint32]bool, v *View) error {
	var found Lot[Route]
	err := k.dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, family, func() { found = Lot[Route]{} }, func(m []byte) error {
		r, err := k.parseRoute(m)
		if err != nil {
			return err
		}
		if msg := nl.DeserializeRtMsg(m); msg.Flags&unix.RTM_F_CLONED == 0 && msg.Family == uint8(family) && q.Concerns(r, tables) {
			found.Add(r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	v.Routes.put(found)
	return nil
}

// Look implements Edge: it reads interfaces, ways to the switches, and settings.
func (k *linux) Look(q Query, v *View) (Facts, error) {
	facts := Facts{Ways: map[netip.Addr]Way{}}
	var links []netlink.Link
	if err := again(func() (err error) {
		links, err = k.netlink.LinkList()
		return err
	}); err != nil {
		return facts, fmt.Errorf("list interfaces: %w", err)
	}
	names, indexes := map[int]string{}, map[string]int{}
	for _, l := range links {
		a := l.Attrs()
		names[a.Index], indexes[a.Name] = a.Name, a.Index
		kind := l.Type()
		if kind == "device" {
			kind = ""
		}
		facts.Links = append(facts.Links, Link{
			Name: a.Name, Kind: kind, ARP: a.RawFlags&(unix.IFF_NOARP|unix.IFF_LOOPBACK) == 0 && a.EncapType == "ether",
		})
	}
	for _, s := range q.Switches {
		if w, ok := k.way(s, names); ok {
			facts.Ways[s] = w
		}
	}
	facing := map[string]bool{"lo": true}
	for _, name := range k.o.facing(facts) {
		facing[name] = true
	}
	k.mu.Lock()
	k.names, k.indexes, k.facing, k.q = names, indexes, facing, q
	k.mu.Unlock()
	k.readSettings(k.o.facing(facts), v)
	return facts, nil
}

// nameOf names an interface; a new one has no name before the next look.
func (k *linux) nameOf(index int) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[index]
}

// way asks the kernel how a switch is reached.
func (k *linux) way(to netip.Addr, names map[int]string) (Way, bool) {
	o := &netlink.RouteGetOptions{}
	if zone := to.Zone(); zone != "" {
		o.Oif = zone
	}
	routes, err := k.netlink.RouteGetWithOptions(to.AsSlice(), o)
	if err != nil || len(routes) == 0 {
		return Way{}, false // no route: nothing to tell apart from no way
	}
	r := routes[0]
	source, _ := netip.AddrFromSlice(r.Src)
	return Way{
		Device: names[r.LinkIndex], Source: source.Unmap(),
		OnLink: r.Gw == nil && r.Via == nil && r.Type == unix.RTN_UNICAST && names[r.LinkIndex] != "lo",
	}, true
}

// Do implements Edge.
func (k *linux) Do(c Change) error {
	err := k.change(c)
	if err != nil {
		return remedy(fmt.Errorf("%s: %w", c, err))
	}
	return nil
}

func (k *linux) change(c Change) error {
	switch c := c.(type) {
	case AddRule:
		return k.netlink.RuleAdd(toRule(c.Rule))
	case DeleteRule:
		return gone(k.netlink.RuleDel(toRule(c.Rule)))
	case PutRoute:
		return k.put(c.Route, c.Over)
	case DeleteRoute:
		return gone(k.netlink.RouteDel(k.toRoute(c.Route)))
	case TakeDefault:
		return k.takeDefault(c)
	case GiveDefault:
		return k.giveDefault(c.Route)
	case EditFilter:
		return k.filter.edit(c)
	case Remark:
		return k.remark(c)
	case DropFilter:
		return k.filter.drop()
	case SetSettings:
		return k.set(c.Values)
	case RestoreSettings:
		return k.restore(c.Settings)
	}
	return fmt.Errorf("unknown change %T", c)
}

// gone forgives that what is to be deleted is not there.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func (k *linux) put(r, over Route) error {
	if over == (Route{}) {
		return k.netlink.RouteAdd(k.toRoute(r))
	}
	return k.netlink.RouteReplace(k.toRoute(r))
}
