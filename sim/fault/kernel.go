// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/netip"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/kernel/message"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

var nodes = Who{Roles: []Role{Node}, Least: 1}

// kernelKinds are what befalls kernels of nodes.
func kernelKinds() []Kind {
	return []Kind{
		{
			Name: "meddle", Text: "somebody takes away what agents made in kernels, something at a time",
			Weight: 6, Least: 2 * time.Second, Most: 10 * time.Second, On: nodes, Draw: drawNodes, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.Duration("every", "once without it")},
			Begin: func(b *Backstage, f Fault) func() {
				return b.again(f.With.Duration("every", f.For+1), func() {
					for _, name := range f.On {
						b.Kernel(name).Meddle()
					}
				})
			},
		},
		{
			Name: "foreign-rule", Text: "somebody else has a routing rule of his own, which is not to be touched",
			Weight: 3, Least: 2 * time.Second, Most: 20 * time.Second, On: nodes, Draw: drawNodes,
			Excuses: func(_ Cast, f Fault) []string { return slashed(f.On, "rules") },
			Begin: func(b *Backstage, f Fault) func() {
				rule := foreign(b.random(f).IntN(250))
				return each(f.On, func(name string) func() {
					boot, errno := b.Kernel(name).Boot(), b.Kernel(name).Change(message.Request{Rule: &rule})
					return func() {
						if errno == "" && b.Kernel(name).Boot() == boot {
							b.Kernel(name).Change(message.Request{Rule: &rule, Delete: true})
						}
					}
				})
			},
		},
		{
			Name: "kernel-error", Text: "a share of the calls to kernels fails",
			Weight: 5, Least: time.Second, Most: 10 * time.Second, On: nodes, Excuses: onThem,
			Parameters: []parameter.Parameter{
				parameter.OneOf("errno", "EBUSY without it", errnos...), parameter.Share("share", "0.5 without it"),
				parameter.OneOf("reads", "no without it", "yes", "no"),
			},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				drawNodes(d, c, f)
				f.With = parameter.Values{
					"errno": dice.Pick(d, "errno", errnos), "share": dice.Pick(d, "share", []string{"0.1", "0.5", "1"}),
					"reads": dice.Pick(d, "reads", []string{"no", "yes"}),
				}
			},
			Begin: func(b *Backstage, f Fault) func() {
				errno := f.With["errno"]
				if errno == "" {
					errno = "EBUSY"
				}
				return each(f.On, func(name string) func() {
					return b.Kernel(name).Fail(kernel.Fault{Errno: errno, Share: f.With.Share("share", 0.5), Reads: f.With["reads"] == "yes"})
				})
			},
		},
		{
			Name: "tables-full", Text: "tables of programs at sockets take no more rows: what is added to them fails, in part or as a whole",
			Share: 40, Sockets: true, Least: time.Second, Most: 10 * time.Second, On: nodes, Draw: drawNodes, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.Share("share", "of the calls that add rows; all without it")},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					return b.Kernel(name).Fail(kernel.Fault{Errno: "E2BIG", Share: f.With.Share("share", 1), Sockets: true})
				})
			},
		},
		{
			Name: "listed-unseen", Text: "nodes cannot reach an address that policies list: what is at it is dead, where it befalls all of them",
			Share: 90, Sockets: true, Probes: true, Least: 8 * time.Second, Most: 25 * time.Second, On: nodes,
			Excuses:    func(_ Cast, f Fault) []string { return slashed(f.On, "listed") },
			Parameters: []parameter.Parameter{parameter.OneOf("address", "all without it", listed()...)},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = c.Nodes
				if d.Chance("some", 40) {
					f.On = d.Some("nodes", c.Nodes, d.From("how many", 1, len(c.Nodes)))
				}
				if d.Chance("one", 75) {
					f.With.Set("address", dice.Pick(d, "address", listed()))
				}
			},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					var ends []func()
					for _, a := range listed() {
						if only := f.With["address"]; only == "" || only == a {
							ends = append(ends, b.Network.Cut(name, start.ListedPrefix+a))
						}
					}
					return together(ends)
				})
			},
		},
		{
			Name: "kernel-slow", Text: "calls to kernels take longer",
			Weight: 3, Least: time.Second, Most: 10 * time.Second, On: nodes, Excuses: onThem,
			Parameters: []parameter.Parameter{parameter.Duration("by", "50ms without it")},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("nodes", c.Nodes, 1)
				f.With.Set("by", dice.Pick(d, "by", []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond}))
			},
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() { return b.Kernel(name).Slow(f.With.Duration("by", 50*time.Millisecond)) })
			},
		},
	}
}

// listed are the addresses that policies list.
func listed() (out []string) {
	for _, a := range stage.Listed() {
		out = append(out, a.String())
	}
	return out
}

// errnos are what a kernel may answer to anything.
var errnos = []string{"EBUSY", "ENOBUFS", "ENOMEM", "EINTR"}

func drawNodes(d dice.Dice, c Cast, f *Fault) {
	f.On = d.Some("nodes", c.Nodes, d.From("how many", 1, max(1, len(c.Nodes)/2)))
	if f.Kind == "meddle" && d.Chance("again", 50) {
		f.With.Set("every", d.Time("every", 200*time.Millisecond, 2*time.Second))
	}
}

// foreign is the n-th rule of somebody else: nothing of what a world sends is meant by it.
func foreign(n int) message.Rule {
	return message.Rule{
		Priority: 20_000 + uint32(n), From: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 32), Table: 77, Protocol: 4,
	}
}
