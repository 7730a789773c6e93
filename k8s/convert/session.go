// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
)

// Annotations on peers, for what MetalLB's have no field for. Each has the name and the values of a field of ours.
const (
	AnnotationMode               = ourPrefix + "mode"
	AnnotationTTLSecurity        = ourPrefix + "ttl-security"
	AnnotationSendMax            = ourPrefix + "send-max"
	AnnotationPassive            = ourPrefix + "passive"
	AnnotationRestart            = ourPrefix + "restart"
	AnnotationRestartTime        = ourPrefix + "restart-time"
	AnnotationStaleTime          = ourPrefix + "stale-time"
	AnnotationKeepOnNotification = ourPrefix + "keep-on-notification"
)

// Longest times that fit into the messages of graceful restart (RFC 4724, RFC 9494).
const (
	maxRestartTime = 4095 * time.Second
	maxStaleTime   = (1<<24 - 1) * time.Second
)

// session reads what a session can do beyond what MetalLB knows. What cannot be read makes the peer unusable: the session
// would be another one than was asked for.
func (r *report) session(p *world.Peer, o *api.BGPPeer) {
	spec, notes := &o.Spec, o.Annotations
	r.mode(p, o)
	p.TTLSecurity = r.count("spec.ttlSecurity", spec.TTLSecurity, AnnotationTTLSecurity, notes)
	if p.TTLSecurity != 0 && p.Multihop {
		r.fail("spec.ttlSecurity", "remove spec.ebgpMultiHop: ttlSecurity says how many hops away the switch may be",
			"TTL security and multihop are asked for at once")
	}
	p.SendMax = r.count("spec.sendMax", spec.SendMax, AnnotationSendMax, notes)
	p.Passive = spec.Passive || r.flag(notes, AnnotationPassive)
	r.restart(&p.Restart, o)
	if p.Multihop && p.ASN == p.OwnASN && p.ASN != 0 {
		r.fail("spec.ebgpMultiHop", "remove it", "the switch is of our own AS, where sessions cross hops anyway")
	}
}

// mode reads who peers. Unless somebody asks for nodes it is members, whatever nodeSelectors say: with MetalLB it is nodes.
func (r *report) mode(p *world.Peer, o *api.BGPPeer) {
	spec, field, mode := &o.Spec, "spec.mode", o.Spec.Mode
	if mode == "" && o.Annotations[AnnotationMode] != "" {
		field, mode = annotationField(AnnotationMode), o.Annotations[AnnotationMode]
	}
	p.Mode = oneOf(r, field, mode, world.PeerGroup, world.PeerNode)
	if p.Mode != world.PeerNode {
		if len(spec.NodeSelectors) > 0 {
			r.degrade("spec.nodeSelectors", "remove them, or ask for mode node", "every member peers with the switch, whatever its labels")
		}
		return
	}
	p.NodeSelectors = r.selectors("spec.nodeSelectors", spec.NodeSelectors)
	if spec.Password != "" {
		r.degrade("spec.password", fmt.Sprintf("name it by spec.passwordSecret, or put it into the file %s/%s under bgp.passwordDir of each node", world.KindPeer, o.Name),
			"nodes are not given what is written here: each peers once it has the password in a file of its own")
	}
}

// restart reads what the switch shall do with paths while a member is away.
func (r *report) restart(out *world.Restart, o *api.BGPPeer) {
	spec, notes := &o.Spec, o.Annotations
	field, mode := "spec.restart", spec.Restart
	if mode == "" && notes[AnnotationRestart] != "" {
		field, mode = annotationField(AnnotationRestart), notes[AnnotationRestart]
	}
	out.Mode = oneOf(r, field, mode, world.RestartLongLived, world.RestartPlain, world.RestartNone)
	out.KeepOnNotification = spec.KeepOnNotification || r.flag(notes, AnnotationKeepOnNotification)
	out.Time = r.lasting("spec.restartTime", spec.RestartTime, AnnotationRestartTime, notes, maxRestartTime)
	out.StaleTime = r.lasting("spec.staleTime", spec.StaleTime, AnnotationStaleTime, notes, maxStaleTime)
	switch {
	case out.Mode == world.RestartNone && (out.Time != 0 || out.StaleTime != 0 || out.KeepOnNotification):
		r.fail(field, "remove the times, or graceful restart none", "a switch that keeps nothing has no time to keep it for")
	case out.Mode == world.RestartPlain && out.StaleTime != 0:
		r.fail("spec.staleTime", "remove it, or use restart long-lived", "plain graceful restart has no stale time")
	case out.Mode == world.RestartPlain && out.Time != 0 && out.Time < 2*time.Second:
		r.fail("spec.restartTime", "use at least 2s", "%s is too short for a member to return", out.Time)
	}
}

// count reads a number from 1 to 255 that is a field of ours or an annotation.
func (r *report) count(field string, n *int32, annotation string, notes map[string]string) uint8 {
	value, text := int64(0), strings.TrimSpace(notes[annotation])
	switch {
	case n != nil:
		value = int64(*n)
	case text == "":
		return 0
	default:
		field = annotationField(annotation)
		value, _ = strconv.ParseInt(text, 10, 32) // 0 is refused below
	}
	if value < 1 || value > 255 {
		r.fail(field, "use a number from 1 to 255", "out of range")
		return 0
	}
	return uint8(value)
}

// lasting reads a time that is a field of ours or an annotation.
func (r *report) lasting(field string, d *metav1.Duration, annotation string, notes map[string]string, most time.Duration) time.Duration {
	if text := strings.TrimSpace(notes[annotation]); d == nil && text != "" {
		field = annotationField(annotation)
		parsed, err := time.ParseDuration(text)
		if err != nil {
			r.fail(field, "write it like 600s", "%q is no time", text)
			return 0
		}
		d = &metav1.Duration{Duration: parsed}
	}
	return r.secondsUpTo(field, d, most)
}
