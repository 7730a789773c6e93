// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
)

// What the record gives up of a policy has a reason as well: the policy was deleted or changed, or what it chose was, the Service for places,
// pods and their nodes for backends, nodes for where it is effective.

// said tells whether somebody said anything of a policy since a moment that may cost it what it had.
func (r *s12) said(id fsm.PolicyID, uid string, since time.Duration) bool {
	p := r.atSockets.policies[string(id)]
	_, name, _ := strings.Cut(string(id), "/")
	return p == nil || p.gone || p.uid != uid || r.changedSince(p.written, since) || r.let(name)
}

// changedSince tells whether an object was changed since a moment, or before it and not yet seen then.
func (r *s12) changedSince(l written, since time.Duration) bool {
	return l.gone || l.edited != never && l.edited >= r.unseen(since)
}

// let tells whether an operator let an object go.
func (r *s12) let(name string) bool {
	for subject := range r.released {
		if of, _, _ := strings.Cut(subject, " "); of == name {
			return true
		}
	}
	return false
}

func (r *s12) redirect(s *step, was, is *fsm.Policy) {
	kind, _, _ := strings.Cut(redirectID(was, is), "/")
	had, has := r.parts(was), r.parts(is)
	for _, what := range sortedKeys(has) {
		if _, known := had[what]; !known {
			r.begin(what)
		}
	}
	for _, what := range sortedKeys(had) {
		if _, still := has[what]; still {
			continue
		}
		part := had[what]
		of := part.kind
		if of == "" {
			of = kind
		}
		r.end(of, what, s.Number, func(since time.Duration) bool {
			return r.said(was.ID, was.UID, since) || part.justified != nil && part.justified(since)
		}, part.text)
	}
}

func redirectID(was, is *fsm.Policy) string {
	if is == nil {
		return string(was.ID)
	}
	return string(is.ID)
}

// redirectPart is something that a redirect has.
type redirectPart struct {
	kind      string // of the objects that it is there for; empty: the policy's
	text      string
	justified func(since time.Duration) bool // besides what justifies anything about the policy
}

// parts are what a redirect has, by a name.
func (r *s12) parts(d *fsm.Policy) map[string]redirectPart {
	out := map[string]redirectPart{}
	if d == nil {
		return out
	}
	id := fmt.Sprintf("redirect %s uid %s", d.ID, d.UID)
	out[id] = redirectPart{text: "it was given up, and nobody deleted or changed its policy"}
	for _, c := range d.Captures {
		out[fmt.Sprintf("place %s %d/%s of %s", c.Address, c.Port.Number, protocolName(c.Port), id)] = redirectPart{
			kind: "Service", text: "it is captured no more, and nobody changed the policy or its Service",
			justified: func(since time.Duration) bool {
				o := r.atSockets.services[string(d.Service)]
				return d.Service != "" && (o == nil || r.changedSince(o.written, since) || r.let(string(d.Service))) || r.portOfAnother(d, c)
			},
		}
	}
	for _, b := range d.Backends {
		if b.Pod == "" {
			continue
		}
		out[fmt.Sprintf("backend %s %s uid %s of %s", b.Address, b.Pod, b.UID, id)] = redirectPart{
			kind: "Pod", text: "it was taken away, and its pod runs as it did",
			justified: func(since time.Duration) bool {
				o, n := r.atSockets.pods[b.Pod], r.atSockets.nodes[string(b.Node)]
				return o == nil || o.uid != b.UID || r.changedSince(o.written, since) || r.let(b.Pod) ||
					d.Mode == "hostPort" && (n == nil || r.changedSince(n.written, since) || r.let(string(b.Node)))
			},
		}
	}
	for _, n := range d.Nodes {
		out[fmt.Sprintf("node %s of %s", n, id)] = redirectPart{
			kind: "Node", text: "the policy is not effective there any more, and nobody changed the node",
			justified: func(since time.Duration) bool {
				o := r.atSockets.nodes[string(n)]
				return o == nil || r.changedSince(o.written, since) || r.let(string(n))
			},
		}
	}
	return out
}

// portOfAnother tells whether another policy leads to pods by the proxy port behind a place, which is one policy's.
func (r *s12) portOfAnother(d *fsm.Policy, c fsm.Capture) bool {
	return d.Mode == toProxies && slices.ContainsFunc(fsm.List[*fsm.Policy](r.record.View(), fsm.TablePolicies), func(o *fsm.Policy) bool {
		return o.ID != d.ID && o.Mode == toProxies && slices.ContainsFunc(o.Proxied, func(pod fsm.ProxiedPod) bool {
			return slices.ContainsFunc(pod.Ports, func(p fsm.ProxyPort) bool { return p.Port == fsm.Port{Protocol: c.Port.Protocol, Number: c.Target} })
		})
	})
}
