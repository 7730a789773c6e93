// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// strangerKinds are what machines do that belong to nobody.
func strangerKinds() []Kind {
	return []Kind{
		{
			Name: "strangers", Text: "machines that belong to nobody connect to the Raft port of members, again and again, and do not say who they are",
			Share: 15, Least: 4 * time.Second, Most: 20 * time.Second, On: members,
			Parameters: []parameter.Parameter{
				parameter.Number("crowd", "connections to each member at a time, 100 without it", 1, 2000),
				parameter.Number("machines", "that they come from, 1 without it", 1, 100),
				parameter.OneOf("say", "what they do with a connection, nothing without it", "nothing", "bytes", "lies"),
			},
			Draw: func(d dice.Dice, c Cast, f *Fault) {
				f.On = d.Some("members", c.Members, d.From("how many", 1, len(c.Members)))
				f.With.Set("crowd", d.From("crowd", 1, 320))
				f.With.Set("machines", d.From("machines", 1, 8))
				f.With.Set("say", dice.Pick(d, "say", []string{"nothing", "nothing", "bytes", "lies"}))
			},
			Excuses: func(Cast, Fault) []string { return []string{"network/strangers"} },
			Begin: func(b *Backstage, f Fault) func() {
				return each(f.On, func(name string) func() { return b.crowd(f, name) })
			},
		},
	}
}

// comesAgain is after what time a stranger whose connection ended comes again.
const comesAgain = time.Second

// stranger is one of a crowd.
type stranger struct {
	*Backstage
	from, to, say string
	conn          *network.Conn
	over          bool
}

// crowd has strangers come to a member. What it gives has them go.
func (b *Backstage) crowd(f Fault, to string) (end func()) {
	all := make([]*stranger, f.With.Number("crowd", 100))
	for i := range all {
		all[i] = &stranger{Backstage: b, from: fmt.Sprint("x", i%f.With.Number("machines", 1)), to: to, say: f.With["say"]}
		all[i].come()
	}
	return func() {
		for _, s := range all {
			s.over = true
			s.conn.Reset()
		}
	}
}

func (s *stranger) come() {
	if s.over {
		return
	}
	var hello []byte
	if s.say == "lies" {
		hello = []byte("a group of ours")
	}
	s.conn = s.Network.Dial(s.from, s.to, start.RaftPort, hello)
	s.conn.Handle(nil, func(bool) {
		s.conn.Reset()
		s.World.After(comesAgain, s.come)
	})
	if s.say == "bytes" {
		s.speak(s.conn)
	}
}

// speak sends a byte now and then.
func (s *stranger) speak(c *network.Conn) {
	if s.over || s.conn != c {
		return
	}
	c.Send([]byte{0})
	s.World.After(comesAgain/2, func() { s.speak(c) })
}
