// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// Revokes tells whether a fault of a kind has certificates revoked, which machines have none of in other worlds.
func Revokes(kind string) bool { return kind == "revoke" || kind == "revoke-removed" }

// revokeKinds are what operators do to those of whom they think that somebody else has their key. Package check says what that has to do to
// them, and to nobody else (S22).
func revokeKinds() []Kind {
	return []Kind{
		{
			Name: "revoke", Text: "an operator revokes certificates of agents or members; at the end they have others, or it is taken back",
			Share: 12, Least: 4 * time.Second, Most: 15 * time.Second, On: processes, Excuses: onThem, Begin: revoke,
			Parameters: []parameter.Parameter{
				parameter.OneOf("by", "serial without it, and of members in any case", "serial", "name"),
				parameter.OneOf("back", "how it ends, by name; issued without it", "issued", "all"),
			},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				if f.On = d.Some("members", c.Members, 1); d.Chance("node", 65) && len(c.Nodes) > 0 {
					f.On = d.Some("nodes", c.Nodes, d.From("how many", 1, max(1, len(c.Nodes)/3)))
				}
				f.With.Set("by", dice.Pick(d, "by", []string{"serial", "name", "name"}))
				f.With.Set("back", dice.Pick(d, "back", []string{"issued", "all"}))
			},
		},
		{
			Name: "revoke-removed", Text: "an operator removes a member and revokes its certificates; at the end it has another one, and is added again with an empty disk",
			Share: 5, Least: 5 * time.Second, Most: 12 * time.Second, On: members, Loses: true, Excuses: onThem,
			Draw: func(d dice.Dice, c Cast, f *Fault) { f.On = d.Some("members", c.Members, 1) },
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() {
					b.Group().Operator().Remove(name, false, nil)
					revocation := b.Group().Operator().Revoke("member", name)
					return func() {
						revocation.TakeBack(false, b.comesBack(f, name, func(after int64) {
							b.Issue(name, after)
							b.renew(f, name)
							b.Group().Operator().Readmit(name, name+":"+start.RaftPort, nil)
						}))
					}
				})
			},
		},
	}
}

// revoke revokes what each has.
func revoke(b *Backstage, f Fault) func() {
	return each(f.On, func(name string) func() {
		issued := func(after int64) {
			b.Issue(name, after)
			b.Hold(name)()
		}
		if f.With["by"] != "name" || slices.Contains(b.Cast.Members, name) {
			b.Group().Operator().Revoke(fsm.RevokedSerial, b.Certificate(name))
			return func() { b.comesBack(f, name, issued)(0) }
		}
		revocation, all := b.Group().Operator().Revoke("agent", name), f.With["back"] == "all"
		if all {
			issued = func(int64) {}
		}
		return func() { revocation.TakeBack(all, b.comesBack(f, name, issued)) }
	})
}

// stolen is for how long what was revoked is still tried once others are good.
const stolen = 3 * time.Second

// welcome is for how long somebody is excused who is let in again: as long as agents wait at most until they try again, and some.
const welcome = 12 * time.Second

// comesBack gives what has somebody come back once nothing speaks against it, which may be a while after the end of a fault: it excuses him until then.
func (b *Backstage) comesBack(f Fault, name string, back func(after int64)) func(after int64) {
	over := b.frame(f.Kind, name+" is to be let in again", []string{name})
	return func(after int64) {
		b.World.After(stolen, func() { back(after) })
		b.World.After(stolen+welcome, over)
	}
}
