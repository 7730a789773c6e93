// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
)

// Reasons of our conditions. Those of addresses that cannot be had are the codes of fsm.Pending in CamelCase: NoPool,
// PoolExhausted, OutsidePools, AddressTaken, InvalidAddress, QuotaExceeded, NotAllowed, PortClosing, NodePortTaken.
const (
	ReasonAllocated   = "Allocated"
	ReasonUndecided   = "Undecided"   // the leader has not planned it yet
	ReasonQuarantined = "Quarantined" // the record was restored; nothing is given out yet
	ReasonDeleting    = "Deleting"    // the Service goes

	ReasonAnnounced         = "Announced"
	ReasonNotAllocated      = "NotAllocated"      // there is no address to announce
	ReasonNoNextHop         = "NoNextHop"         // no node can carry the address now
	ReasonNodesFailed       = "NodesFailed"       // no node could carry it out
	ReasonWaitingForNodes   = "WaitingForNodes"   // no node acknowledged its rules yet
	ReasonNoSession         = "NoSession"         // announced to nobody: no peer that is to be sent it has a session that takes it
	ReasonWaitingForMembers = "WaitingForMembers" // no member announced it yet
	ReasonSilentNodes       = "SilentNodes"       // announced, but its nodes do not answer and there are no others
)

// Explanation is the leader's word on something that is not as it shall be: a stable code for programs and a sentence
// for people.
type Explanation struct {
	Kind, Name, Code, Text string
}

// Codes of explanations that conditions tell.
const (
	codeQuarantine = "quarantine"
	codeNoNextHop  = "no-next-hop"
	codeDrained    = "service-drained"
	codeLastHop    = "last-hop"
	codePolicy     = "policy"
)

// Explanations are found by kind and name.
type Explanations map[[2]string][]Explanation

// Explain orders what the leader says.
func Explain(list []Explanation) Explanations {
	out := make(Explanations, len(list))
	for _, e := range list {
		key := [2]string{e.Kind, e.Name}
		out[key] = append(out[key], e)
	}
	return out
}

// text finds what is said under a code.
func (e Explanations) text(kind fsm.Table, name string, codes ...string) string {
	for _, x := range e[[2]string{string(kind), name}] {
		if slices.Contains(codes, x.Code) {
			return x.Text
		}
	}
	return ""
}

// unrouted tells why an address leads nowhere, or nothing.
func (e Explanations) unrouted(a netip.Addr) string {
	return e.text(fsm.TableRoutes, fsm.HostPrefix(a).String(), codeNoNextHop, codeDrained)
}

// verdict is a condition without its times.
type verdict struct {
	kind    string
	status  metav1.ConditionStatus
	reason  string
	message string
}

// is makes a verdict.
func is(kind string, yes bool, reason, message string) verdict {
	v := verdict{kind, metav1.ConditionFalse, reason, message}
	if yes {
		v.status = metav1.ConditionTrue
	}
	return v
}

// allocated says whether the Service has the addresses that it asks for.
func (f *facts) allocated(why Explanations) verdict {
	has := make([]string, 0, len(f.addresses))
	for i := range f.addresses {
		has = append(has, f.addresses[i].String())
	}
	held := strings.Join(has, ", ")
	switch p := f.service.Pending; {
	case f.service.Deleting:
		return is(Allocated, false, ReasonDeleting, "its addresses are being taken back")
	case p.Code != "" && held != "":
		return is(Allocated, false, camel(p.Code), p.Text+"; it has "+held)
	case p.Code != "":
		return is(Allocated, false, camel(p.Code), p.Text)
	case held != "":
		if text := why.text(fsm.TableServices, string(f.service.ID), codePolicy); text != "" {
			held += "; " + text
		}
		return is(Allocated, true, ReasonAllocated, held)
	}
	if text := why.text(fsm.TableServices, string(f.service.ID), codeQuarantine); text != "" {
		return is(Allocated, false, ReasonQuarantined, text)
	}
	return is(Allocated, false, ReasonUndecided, "no address was decided on yet")
}

// announcedBy says whether each address is announced. One that was keeps being so for as long as members may announce
// it: their own word on it is lost for a moment when all of them restart, the paths are not. A session that is away for a moment still
// counts (see cmd/internal/member), so that one for which no peer has a session is not.
func (f *facts) announcedBy(why Explanations, before *metav1.Condition) verdict {
	switch {
	case f.service.Deleting:
		return is(Announced, false, ReasonDeleting, "its addresses are withdrawn")
	case len(f.addresses) == 0:
		return is(Announced, false, ReasonNotAllocated, "it has no address yet")
	}
	enough := announced
	if before != nil && before.Status == metav1.ConditionTrue {
		enough = waitingForMembers
	}
	good := verdict{}
	names := make([]string, 0, len(f.addresses))
	for i := range f.addresses {
		a := &f.addresses[i]
		prefix := fsm.HostPrefix(a.address).String()
		if a.stage() < enough {
			return f.notAnnounced(why)
		}
		if text := why.text(fsm.TableRoutes, prefix, codeLastHop); text != "" && good.kind == "" {
			good = is(Announced, true, ReasonSilentNodes, a.address.String()+": "+text)
		}
		names = append(names, a.address.String())
	}
	if good.kind == "" {
		good = is(Announced, true, ReasonAnnounced, strings.Join(names, ", "))
	}
	return good
}

// notAnnounced names the first address that is not announced, whatever was said before: what is said now is not to be said in another
// way for that.
func (f *facts) notAnnounced(why Explanations) verdict {
	i := slices.IndexFunc(f.addresses, func(a fact) bool { return a.stage() < announced })
	a := &f.addresses[i]
	return is(Announced, false, a.reason(), a.address.String()+": "+a.why(why.unrouted(a.address)))
}

// reason is why an address is not announced.
func (f *fact) reason() string {
	switch f.stage() {
	case noNextHop:
		return ReasonNoNextHop
	case failedNodes:
		return ReasonNodesFailed
	case waitingForNodes:
		return ReasonWaitingForNodes
	case unreached:
		return ReasonNoSession
	}
	return ReasonWaitingForMembers
}

// why says the same in words. Planned is the leader's reason for there being no next hop.
func (f *fact) why(planned string) string {
	switch f.stage() {
	case noNextHop:
		if planned == "" {
			planned = "no node can carry it now"
		}
		return planned
	case failedNodes:
		return "could not be set up on " + listWays(f.ways(every)) + "; the agent's log there says why"
	case waitingForNodes:
		return "waits until its rules are acknowledged by " + listWays(f.ways(every))
	case unreached:
		i := slices.IndexFunc(f.hops, func(h hop) bool { return h.unreached != "" })
		return f.hops[i].unreached
	}
	return "no member has announced it yet"
}

// verdicts are all conditions of ours, in order of type.
func (f *facts) verdicts(why Explanations, s *Seen) []verdict {
	return []verdict{f.allocated(why), f.announcedBy(why, s.condition(Announced))}
}

// dated makes a condition of a verdict: a status that stays keeps its time.
func (v verdict) dated(before *metav1.Condition, generation int64, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: v.kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	}
	if before != nil && before.Status == v.status && !before.LastTransitionTime.IsZero() {
		c.LastTransitionTime = before.LastTransitionTime
	}
	return c
}

// camel turns a code such as "no-pool" into a reason such as "NoPool".
func camel(code string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(code, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
