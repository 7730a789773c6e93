// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
)

// Write is all that shall be ours in the status of one Service. What was ours and is not in it goes.
type Write struct {
	ID              fsm.ServiceID
	UID             string
	ResourceVersion string // of the Service that it was decided on
	Ingress         []corev1.LoadBalancerIngress
	Conditions      []metav1.Condition
	// Finalizer is set or taken away, and nothing else changes, if this is not KeepFinalizer.
	Finalizer FinalizerWrite
	// Urgent says that it tells an address or an end, not only how far something is on its way.
	Urgent bool
}

// FinalizerWrite is what a Write does to Finalizer.
type FinalizerWrite uint8

// What can be done to Finalizer.
const (
	KeepFinalizer FinalizerWrite = iota
	SetFinalizer
	LiftFinalizer // others who set it, too, keep it
)

// Project says what to write so that each Service shows what the record holds of it. Once that is done it says
// nothing more. It never removes what is not ours, and nothing at all while the record is in quarantine.
func Project(v *fsm.View, why Explanations, current []*Seen, o Options, now time.Time) []Write {
	var out []Write
	for _, s := range current {
		if w, needed := project(v, why, s, o, now); needed {
			out = append(out, w)
		}
	}
	return out
}

// project decides on one Service: on its finalizer first where an address is to be shown for the first time or nothing
// holds it any more, else on its status.
func project(v *fsm.View, why Explanations, s *Seen, o Options, now time.Time) (Write, bool) {
	w, changed := projectStatus(v, why, s, o, now)
	of := finalizerOf(v, s, o)
	if of == KeepFinalizer || changed && (of == LiftFinalizer || s.OwnsIngress || len(w.Ingress) == 0) {
		return w, changed
	}
	return Write{ID: s.ID, UID: s.UID, ResourceVersion: s.ResourceVersion, Finalizer: of, Urgent: true}, true
}

// finalizerOf decides on Finalizer. It is for Services that the record holds, and is not set on one that is going already;
// it stays until the record holds it no more, which is when no address of it is left to withdraw (fsm.DeleteService).
func finalizerOf(v *fsm.View, s *Seen, o Options) FinalizerWrite {
	have, held := fsm.Get[*fsm.Service](v, fsm.TableServices, string(s.ID))
	if o.Finalizer && held && have.UID != s.UID {
		return KeepFinalizer // an earlier life of it: its addresses are withdrawn first
	}
	switch {
	case s.Finalized && !o.Finalizer:
		return LiftFinalizer
	case s.Finalized && !held && (s.Going || !o.ours(s)) && v.Group().Quarantine == fsm.Revision{}:
		return LiftFinalizer // in quarantine, what the record lacks may have been announced since it was saved
	case o.Finalizer && !s.Finalized && held && !s.Going && o.ours(s):
		return SetFinalizer
	}
	return KeepFinalizer
}

// projectStatus decides on the status of one Service.
func projectStatus(v *fsm.View, why Explanations, s *Seen, o Options, now time.Time) (Write, bool) {
	w := Write{ID: s.ID, UID: s.UID, ResourceVersion: s.ResourceVersion}
	if !o.ours(s) {
		w.Urgent = true
		return w, s.Owned && v.Group().Quarantine == fsm.Revision{}
	}
	f := factsOf(v, s.ID, s.UID)
	if f == nil {
		return w, false // not planned yet: nobody knows better than what stands there
	}
	w.Ingress = f.ingress(s, o)
	if len(w.Ingress) == 0 && !s.OwnsIngress {
		w.Ingress = nil // what somebody else wrote may stay while there is nothing of ours to show
	} else if !slices.EqualFunc(w.Ingress, s.Ingress, sameAddress) {
		w.Urgent = true
	}
	changed := w.Urgent || len(w.Ingress) > 0 && !slices.EqualFunc(w.Ingress, s.Ingress, sameIngress) || s.OwnsIngress && len(w.Ingress) == 0
	for _, said := range f.verdicts(why, s) {
		before := s.condition(said.kind)
		c := said.dated(before, s.Generation, now)
		switch {
		case before == nil, before.Status != c.Status:
			changed = true
			w.Urgent = w.Urgent || c.Status == metav1.ConditionTrue
		case *before != c:
			changed = true
		}
		w.Conditions = append(w.Conditions, c)
	}
	return w, changed
}

// ingress lists the addresses to show: those that the Service owns, once they are announced. One that stands there
// stays until the Service gives it up, also while no node can carry it.
func (f *facts) ingress(s *Seen, o Options) []corev1.LoadBalancerIngress {
	var out []corev1.LoadBalancerIngress
	switch {
	case f.quarantined && s.OwnsIngress:
		out = slices.Clone(s.Ingress)
	case f.quarantined && len(s.Ingress) > 0:
		return nil
	}
	if f.service.Deleting || s.Going {
		return out
	}
	for i := range f.addresses {
		a := &f.addresses[i]
		if a.external && !o.ExternalIPs || a.stage() < announced && !shows(s.Ingress, a.address) || shows(out, a.address) {
			continue
		}
		mode := corev1.LoadBalancerIPModeVIP
		out = append(out, corev1.LoadBalancerIngress{IP: a.address.String(), IPMode: &mode, Ports: f.ports(a)})
	}
	return out
}

// Errors of ports, as Kubernetes has them: a name of ours and words in camel case.
const (
	PortClosing      = prefix + "PortClosing"      // nodes may still pass it on to a Service that gave it up
	PortNotAllocated = prefix + "PortNotAllocated" // the record has not given it to the Service, and conditions say why
)

// ports lists the ports of an address where one of them does not serve: all of them, as Kubernetes has it, with an error
// for those that do not. Where all serve there is nothing to say.
func (f *facts) ports(a *fact) []corev1.PortStatus {
	if len(a.lacking) == 0 {
		return nil
	}
	why := PortNotAllocated
	if f.service.Pending.Code == pendingPort {
		why = PortClosing
	}
	out := make([]corev1.PortStatus, 0, len(f.service.Frontends))
	for _, front := range f.service.Frontends {
		one := corev1.PortStatus{Port: int32(front.Port.Number), Protocol: corev1.Protocol(strings.ToUpper(front.Port.Protocol.String()))}
		if slices.Contains(a.lacking, front.Port) {
			one.Error = &why
		}
		out = append(out, one)
	}
	return out
}

// pendingPort is the leader's code for ports that are being taken back from others (leader.PendingPort).
const pendingPort = "port-closing"

// shows tells whether a list has an address.
func shows(list []corev1.LoadBalancerIngress, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(in corev1.LoadBalancerIngress) bool {
		have, err := netip.ParseAddr(in.IP)
		return err == nil && have == a
	})
}

func sameIngress(a, b corev1.LoadBalancerIngress) bool {
	return sameAddress(a, b) && slices.EqualFunc(a.Ports, b.Ports, func(a, b corev1.PortStatus) bool {
		return a.Port == b.Port && a.Protocol == b.Protocol && (a.Error == nil) == (b.Error == nil) && (a.Error == nil || *a.Error == *b.Error)
	})
}

func sameAddress(a, b corev1.LoadBalancerIngress) bool {
	mode := func(in corev1.LoadBalancerIngress) corev1.LoadBalancerIPMode {
		if in.IPMode == nil {
			return ""
		}
		return *in.IPMode
	}
	return a.IP == b.IP && a.Hostname == b.Hostname && mode(a) == mode(b)
}
