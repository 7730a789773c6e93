// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// probers is who can be held to what is found out by probes: nodes, by what befell them, and the group.
type probers struct {
	*judge
	// began is when a process started.
	began map[string]time.Duration
	// faults are those that keep whom they befall from its work; marred is when one last began or ended, struck how many there are now.
	faults map[int]event.FaultBegan
	marred map[victim]time.Duration
	struck map[victim]int
	// unsure are nodes that came back with an older disk, or that the record knows by what was restored, until they acknowledge something.
	unsure map[string]bool
}

// victim is whom a fault befalls, and whether it only ends processes.
type victim struct {
	name string
	ends bool
}

func newProbers(j *judge) probers {
	return probers{
		judge: j, began: map[string]time.Duration{}, faults: map[int]event.FaultBegan{}, marred: map[victim]time.Duration{},
		struck: map[victim]int{}, unsure: map[string]bool{},
	}
}

// cuts are faults of the network between machines that a world has, which nothing that is probed is. They keep no agent from probing, nor from its tables.
var cuts = []string{"partition", "isolate", "one-way", "swizzle", "delay", "loss", "break"}

// ends are faults that end processes, and nothing else.
var ends = []string{"kill", "fuse", "rolling-restart"}

func (p *probers) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Started:
		p.began[x.Process] = e.At
	case event.Wiped:
		p.unsure[x.Machine] = true
	case event.FaultBegan:
		if !slices.Contains(cuts, x.Fault) {
			p.faults[x.ID] = x
			p.strikes(x, 1)
		}
	case event.FaultEnded:
		if began, ok := p.faults[x.ID]; ok {
			delete(p.faults, x.ID)
			p.strikes(began, -1)
		}
	}
}

// strikes takes in that a fault begins or ends.
func (p *probers) strikes(f event.FaultBegan, by int) {
	on := f.On
	if len(on) == 0 {
		on = []string{everybody}
	}
	for _, name := range on {
		at := victim{name, slices.Contains(ends, f.Fault)}
		p.struck[at] += by
		p.marred[at] = p.scene.now
	}
}

func (p *probers) step(s *step) {
	if s.replaced {
		for _, n := range p.topology.Nodes {
			p.unsure[n.Name] = true
		}
		return
	}
	fsm.Changes(s.before, s.after, fsm.TableNodes, func(was, is *fsm.Node) {
		if is != nil && (was == nil || was.Acknowledged != is.Acknowledged) {
			delete(p.unsure, string(is.ID))
		}
	})
}

// works tells whether an agent runs, not just since now, and for a time nothing befell it that keeps it from its tables, but that it was ended.
func (p *probers) works(node string, d time.Duration) bool {
	at, ever := p.began[node]
	return p.scene.runs[node] && (!ever || p.scene.now-at >= takenUp) && !p.scene.dark[node] && p.spared(victim{node, false}, d) && p.spared(victim{everybody, false}, d)
}

// stays tells whether it was not even ended, nor started.
func (p *probers) stays(node string, d time.Duration) bool {
	at, ever := p.began[node]
	return p.works(node, d) && p.spared(victim{node, true}, d) && p.spared(victim{everybody, true}, d) && (!ever || p.scene.now-at >= d)
}

func (p *probers) spared(v victim, d time.Duration) bool {
	at, ever := p.marred[v]
	return p.struck[v] == 0 && (!ever || p.scene.now-at >= d)
}

// acknowledged tells whether a node said that it carried out what is so since a revision, and nothing that it had then was lost.
func (p *probers) acknowledged(v *fsm.View, node string, since fsm.Revision) bool {
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, node)
	return ok && string(n.Boot) == p.scene.boots[node] && !n.Acknowledged.IsZero() && !n.Acknowledged.Before(since) && !p.unsure[node]
}

// agree tells whether the group has been able to say for a time what most nodes find: one undisturbed member leads a majority.
func (p *probers) agree() bool {
	lead := p.scene.leader
	return lead != "" && p.scene.now-p.scene.lead >= agreedOn && p.scene.worksFor(lead, agreedOn) && p.scene.soundFor(0, agreedOn)
}
