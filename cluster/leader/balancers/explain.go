// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"strconv"

	"fairlead.io/fairlead/fsm/world"
)

func (p *planner) explain(kind world.Kind, name, code, text string) {
	p.out.Waiting = append(p.out.Waiting, Explanation{Kind: string(kind), Name: name, Code: code, Text: text})
}

// crowd is what is said of one object for many of its backends. One is spelled out, the others are counted.
type crowd struct {
	of    Explanation
	text  string
	count int
}

// explainOne explains one backend of an object.
func (p *planner) explainOne(kind world.Kind, name, code, text string) {
	key := Explanation{Kind: string(kind), Name: name, Code: code}
	c := p.crowdOf[key]
	if c == nil {
		c = &crowd{of: key, text: text}
		p.crowdOf[key] = c
		p.crowds = append(p.crowds, c)
	}
	c.count++
	p.crowded++
}

// saidSoFar counts what was proposed for bindings, asked and explained.
func (p *planner) saidSoFar() int {
	return len(p.puts) + len(p.out.Questions) + len(p.out.Waiting) + p.crowded
}

// explainBinding explains why a binding stays, with its owner.
func (p *planner) explainBinding(l *line, code, text string) {
	at := placeOf(l.Owner)
	if l.Owner == "" {
		at = place{kind: world.KindBackendRecord, id: l.id}
	}
	p.explainOne(at.kind, at.id.String(), code, "binding "+string(l.ID)+": "+text)
}

func (p *planner) explainCrowds() {
	for _, c := range p.crowds {
		e := c.of
		e.Text = c.text
		if c.count > 1 {
			e.Text += ", and " + strconv.Itoa(c.count-1) + " more"
		}
		p.out.Waiting = append(p.out.Waiting, e)
	}
}

const quarantineText = "nothing is taken away until the record, which was restored, agrees with the outside"

func (p *planner) explainOldFormat() {
	if len(p.in.Drivers)+len(p.in.LoadBalancers)+len(p.in.Binds)+len(p.in.BackendRecords) > 0 {
		p.explain(world.KindDriver, "", WaitsForFormat,
			"outside load balancers wait until every member runs a release that knows them and the new format is finalized")
	}
}
