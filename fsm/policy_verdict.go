// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// SetPolicyHealth says what most of the nodes that probe the addresses of a policy think of them: all of it, in place of what was said
// before. What is said of places that are not the policy's any more is left out. From format 2 on.
type SetPolicyHealth struct {
	ID       PolicyID       `pb:"1"`
	UID      string         `pb:"2"`
	Verdicts []ProbeVerdict `pb:"3"`
}

// Kind is KindSetPolicyHealth.
func (*SetPolicyHealth) Kind() Kind { return KindSetPolicyHealth }

func (c *SetPolicyHealth) apply(tx *txn) Outcome {
	subject := "policy " + string(c.ID)
	if out, old := tx.formatBelow(formatPolicies, subject); old {
		return out
	}
	r, ok := find[*Policy](tx.rows, TablePolicies, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if r.UID != c.UID {
		return refuse(RejectStaleRevision, subject, r.UID, c.UID)
	}
	next := *r
	if tx.judge(&next.Verdicts, &next.History, c.Verdicts, r.Probed()) {
		tx.put(&next)
	}
	return tx.ok()
}

// judge sets the verdicts on places that are probed to those that are said now, notes what people should know, and tells whether anything
// changed.
func (tx *txn) judge(verdicts *[]ProbeVerdict, history *Trail, said []ProbeVerdict, probed []Probed) bool {
	now := verdictsAt(said, probed)
	if slices.Equal(now, *verdicts) {
		return false
	}
	if what := verdictChange(*verdicts, now); what != "" {
		*history = tx.step(*history, what)
	}
	*verdicts = now
	return true
}

// verdictsFor are what of the verdicts of a policy goes for what it becomes.
func (r *Policy) verdictsFor(next *Policy) []ProbeVerdict {
	if r.UID != next.UID || !r.Probe.Equal(next.Probe) {
		return nil
	}
	return verdictsAt(r.Verdicts, next.Probed())
}

// verdictsAt are those of places that are probed, each once, in order.
func verdictsAt(all []ProbeVerdict, probed []Probed) (out []ProbeVerdict) {
	places := map[Probed]bool{}
	for _, p := range probed {
		places[p] = true
	}
	for _, v := range all {
		if places[v.place()] {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b ProbeVerdict) int { return a.place().compare(b.place()) })
	return slices.CompactFunc(out, func(a, b ProbeVerdict) bool { return a.place() == b.place() })
}

// Probed is a place that is probed: a listed address, and a target port; or an endpoint of a Service, without a port.
type Probed struct {
	Address netip.Addr
	Port    Port
}

func (p Probed) String() string {
	if p.Port == (Port{}) {
		return p.Address.String()
	}
	return fmt.Sprintf("%s %d/%s", p.Address, p.Port.Number, p.Port.Protocol)
}

func (p Probed) compare(o Probed) int {
	return cmp.Or(p.Address.Compare(o.Address), cmp.Compare(p.Port.Protocol, o.Port.Protocol), cmp.Compare(p.Port.Number, o.Port.Number))
}

func (v ProbeVerdict) place() Probed { return Probed{v.Address, v.Port} }

// noProbe is the type of a probe that is not made, in the words of package world.
const noProbe = "None"

// Wanted tells whether there is anything to probe by.
func (p Probe) Wanted() bool { return p.Type != "" && p.Type != noProbe }

// Probed lists the places that hosts form an opinion of, in order, each once; none without a probe.
func (r *Policy) Probed() (out []Probed) {
	if !r.Probe.Wanted() {
		return nil
	}
	for _, c := range r.Captures {
		for _, b := range r.Backends {
			if b.Pod == "" && b.Address.Is4() == c.Address.Is4() {
				out = append(out, Probed{b.Address, Port{Protocol: c.Port.Protocol, Number: c.Target}})
			}
		}
	}
	slices.SortStableFunc(out, Probed.compare)
	return slices.Compact(out)
}

// FailsOpen lists the captured places of which every address is thought to be bad: there all of them are used (balancing §14).
func (r *Policy) FailsOpen() (out []Capture) {
	bad, listed := map[Probed]bool{}, map[Probed]bool{}
	for _, v := range r.Verdicts {
		bad[v.place()] = !v.Healthy
	}
	for _, p := range r.Probed() {
		listed[p] = true
	}
	for _, c := range r.Captures {
		some, all := false, true
		for _, b := range r.Backends {
			if p := (Probed{b.Address, Port{Protocol: c.Port.Protocol, Number: c.Target}}); listed[p] && b.Address.Is4() == c.Address.Is4() {
				some, all = true, all && bad[p]
			}
		}
		if some && all {
			out = append(out, c)
		}
	}
	return out
}

// Equal tells whether both ask for the same.
func (p Probe) Equal(o Probe) bool {
	return p.Type == o.Type && p.Port == o.Port && p.Path == o.Path && slices.Equal(p.Statuses, o.Statuses) && p.Interval == o.Interval &&
		p.Timeout == o.Timeout && p.Healthy == o.Healthy && p.Unhealthy == o.Unhealthy
}

// mostTold is of how many places a step of the history tells.
const mostTold = 3

// verdictChange names the places of which something else is thought, empty if there are none.
func verdictChange(before, after []ProbeVerdict) string {
	was := map[Probed]bool{} // healthy
	for _, v := range before {
		was[v.place()] = v.Healthy
	}
	var told []string
	for _, v := range after {
		healthy, known := was[v.place()]
		if known && healthy == v.Healthy || !known && v.Healthy {
			continue // to begin with nothing is thought to be bad
		}
		what := "bad"
		if v.Healthy {
			what = "good again"
		}
		told = append(told, fmt.Sprintf("%s is %s, say %d of %d nodes", v.place(), what, v.Say, v.Of))
	}
	if n := len(told) - mostTold; n > 0 {
		told = append(told[:mostTold], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(told, "; ")
}
