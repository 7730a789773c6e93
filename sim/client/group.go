// SPDX-License-Identifier: Apache-2.0

package client

import (
	"math/rand/v2"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/network"
)

// Machines that clients call from. What is called m and a number is taken for a member, and nobody else may propose.
const (
	Machine         = "m0"
	OperatorMachine = "operator"
)

// Options is what a Group is made of. Fields without "optional" are required.
type Options struct {
	World   *engine.World
	Network *network.Network
	// Members lists the members that may be asked, in order of their names.
	Members func() []string
	// Record is what the group agreed on, for its identity and epoch. Optional: without it only an operator may call.
	Record func() *fsm.View
}

// Group is a group as its clients reach it.
type Group struct {
	o     Options
	calls int // that were made
	// welcome is the lineage that was last taken, and unwelcome says that it was not any more; see named.
	welcome   fsm.Lineage
	unwelcome bool
}

// New makes a Group.
func New(o Options) *Group { return &Group{o: o} }

// founded tells whether the group has an identity: before that nobody can be called about its record.
func (g *Group) founded() bool { return g.o.Record != nil && g.o.Record().Group().ID != "" }

func (g *Group) epoch() fsm.Epoch { return g.o.Record().Group().Epoch }

func (g *Group) random(of string) *rand.Rand { return g.o.World.Random("client/" + of) }

// turn is whom somebody asks: the one that answered last, and after an error the next.
type turn struct {
	g *Group
	n int
}

// whom names the member to ask; empty when there is none.
func (t *turn) whom() string {
	members := t.g.o.Members()
	if len(members) == 0 {
		return ""
	}
	return members[t.n%len(members)]
}

func (t *turn) next() { t.n++ }
