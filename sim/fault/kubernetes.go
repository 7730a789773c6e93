// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// kubernetesKinds are what may be wrong with the API server: those of package kube, each as a kind of its own.
func kubernetesKinds() (out []Kind) {
	for _, f := range kube.Faults() {
		out = append(out, Kind{
			Name: "kubernetes-" + string(f), Text: kubernetesTexts[f],
			Weight: 2, Least: time.Second, Most: 15 * time.Second,
			On: Who{Roles: []Role{Member}}, Parameters: kubernetesParameters(f),
			Draw: func(d dice.Dice, c Cast, x *Fault) { drawKubernetes(d, c, f, x) },
			Excuses: func(_ Cast, x Fault) []string {
				if f == kube.Duplicate {
					return []string{start.Kubernetes + "/watches"} // nobody may take harm
				}
				return append([]string{start.Kubernetes}, x.On...)
			},
			Begin: func(b *Backstage, x Fault) func() {
				end := b.Kube.Begin(f, scope(x))
				return func() {
					if end(); f == kube.Rewind {
						b.acceptRewind(patience, b.frame(x.Kind, "the rewind waits for an operator", []string{start.Kubernetes}))
					}
				}
			},
		})
	}
	return out
}

// patience is how often an operator says a thing.
const patience = 20

// acceptRewind says that a rewind is no mistake, which the group waits for, again and again until somebody takes it in: as long as nobody
// has noticed it, there is none to accept. A group
// that has never acted on a cluster has nothing to accept, and one that nobody leads is given up in the end.
func (b *Backstage) acceptRewind(tries int, over func()) {
	b.Group().Operator().AcceptRewind("kubernetes", "restored from a backup", func(err error) {
		if err != nil && !errors.Is(err, admin.Invalid) && tries > 1 {
			b.World.After(time.Second, func() { b.acceptRewind(tries-1, over) })
			return
		}
		over()
	})
}

var kubernetesTexts = map[kube.Fault]string{
	kube.Away:         "the API server does not answer (how: silent), breaks connections (refused) or is unavailable",
	kube.Slow:         "the API server answers late",
	kube.ErrorOn:      "requests to the API server fail with a status; half of the writes that fail have taken effect",
	kube.WatchDelay:   "watch events are late, and so is the cache that lists are read from",
	kube.WatchDrop:    "watches stay open and say nothing more",
	kube.WatchBreak:   "watches break, again and again",
	kube.Duplicate:    "watch events come twice",
	kube.Coalesce:     "of several changes of an object, watches show the last one",
	kube.Compact:      "older versions are gone: 410",
	kube.StaleLists:   "an API server answers that has heard nothing of etcd for a while",
	kube.EmptyLists:   "an API server answers whose lists are empty",
	kube.PartialLists: "an API server answers whose lists show half of what there is",
	kube.Rewind:       "etcd is restored from an older backup",
	kube.OtherCluster: "the address leads to the API server of another cluster",
}

// outsideKinds are those that outside load balancers are planned from, and shown in.
var outsideKinds = []string{"LoadBalancerDriver", "LoadBalancer", "BackendGroup", "BackendRecord", "Bind", "Pod"}

// policyKinds are those that policies of client-side balancing are planned from.
var policyKinds = []string{"BalancingPolicy", "LocalRedirectPolicy", "Pod"}

// statuses are what servers fail with.
var statuses = []int{500, 429, 503, 504, 403}

var hows = []string{"silent", "refused", "unavailable"}

func kubernetesParameters(f kube.Fault) []parameter.Parameter {
	if f == kube.OtherCluster { // one connection carries every kind, and leads to one cluster
		return nil
	}
	all := []parameter.Parameter{
		parameter.Words("kinds", "of objects that it concerns; all without it", append([]string{"Service", "EndpointSlice", "Node", "IPAddressPool", "BGPPeer", "BGPAdvertisement", "Namespace", "BalancingPolicy", "LocalRedirectPolicy"}, outsideKinds...)...),
		parameter.Share("share", "of requests or watches that it concerns; all without it"),
		parameter.Duration("delay", "how late, how old or how often; 2s without it"),
	}
	switch f {
	case kube.ErrorOn:
		all = append(all, parameter.Number("status", "HTTP's, 500 without it", 400, 599))
	case kube.Away:
		all = append(all, parameter.OneOf("how", "silent without it", hows...))
	case kube.EmptyLists, kube.PartialLists: // never drawn: nothing tells such a server from the truth
		all = append(all, parameter.OneOf("how", "they are there by name without it", "everywhere"))
	}
	return all
}

func drawKubernetes(d dice.Dice, c Cast, f kube.Fault, x *Fault) {
	if d.Chance("one member", 40) {
		x.On = d.Some("members", c.Members, 1)
	}
	if f == kube.OtherCluster {
		return
	}
	if d.Chance("some kinds", 30) {
		kinds, most := []string{"Service", "EndpointSlice", "Node"}, 2
		if c.Outside {
			kinds, most = append(kinds, outsideKinds...), 4
		}
		if c.Policies {
			kinds, most = append(kinds, policyKinds...), 4
		}
		x.With.Set("kinds", strings.Join(d.Some("kinds", kinds, d.From("how many kinds", 1, most)), ","))
	}
	if d.Chance("some requests", 30) {
		x.With.Set("share", dice.Pick(d, "share", []string{"0.5", "0.2", "0.8"}))
	}
	if d.Chance("delay", 60) {
		x.With.Set("delay", d.Time("delay", 200*time.Millisecond, 6*time.Second))
	}
	switch f {
	case kube.ErrorOn:
		x.With.Set("status", dice.Pick(d, "status", statuses))
	case kube.Away:
		x.With.Set("how", dice.Pick(d, "how", hows))
	}
}

func scope(x Fault) kube.Scope {
	return kube.Scope{
		Kinds: x.With.Words("kinds"), From: x.On, Share: x.With.Share("share", 0), Delay: x.With.Duration("delay", 0),
		Status: x.With.Number("status", 0), How: x.With["how"],
	}
}
