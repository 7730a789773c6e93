// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// strayKinds are what befalls copies of the record in members' memories. Members look for it once a minute: it takes longer worlds than are drawn.
func strayKinds() []Kind {
	return []Kind{{
		Name: "stray-record", Text: "members apply an entry otherwise than the group agreed, as another build would, or a bit of what they hold flips in memory; they get empty disks at the end",
		Least: 80 * time.Second, Most: 120 * time.Second, On: members, Loses: true, Excuses: onThem, Begin: strayRecord,
		Parameters: []parameter.Parameter{
			parameter.OneOf("what", "bit: a bit flips behind the digest; they apply something else without it", "bit"),
			parameter.OneOf("leads", "whether the first of them is handed leadership before", "yes"),
		},
		Draw: func(d dice.Dice, c Cast, f *Fault) { f.On = d.Some("members", c.Members, 1) },
	}}
}

func strayRecord(b *Backstage, f Fault) func() {
	prefix := start.OtherRecord
	if f.With["what"] == "bit" {
		prefix = start.FlippedBit
	}
	befall := func(error) {
		for _, name := range f.On {
			id := fsm.RegisterID(prefix + name)
			b.Group().NewHand("stray").Do(string(id), &fsm.PutRegister{ID: id, UID: "stray", Version: 1, Spec: []byte("{}")}, nil)
		}
	}
	if f.With["leads"] == "yes" {
		b.Group().Operator().Transfer(f.On[0], befall)
	} else {
		befall(nil)
	}
	return func() {
		for _, name := range f.On {
			b.renew(f, name)
		}
	}
}
