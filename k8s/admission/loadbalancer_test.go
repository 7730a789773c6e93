// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

// lbcf §6.4
func TestLoadBalancers(t *testing.T) {
	const asked = "shop/clb validateLoadBalancer Create spec=map[vip:198.51.100.20] attributes=map[algo:rr] old=-"
	const again = "shop/clb validateLoadBalancer Update spec=map[vip:198.51.100.20] attributes=map[algo:rr] old=map[algo:rr] lenient"
	const shared = `{metadata: {name: lbcf-edge, namespace: kube-system}, spec: {lbDriver: lbcf-clb, scope: [shop, "*"]}}`
	run(t, LoadBalancer, []row{
		{rule: "L8", what: "create asks the driver", op: create, calls: asked},
		{rule: "L8", what: "update asks the driver", op: update, edit: `{spec: {attributes: {algo: maglev}}}`,
			calls: "shop/clb validateLoadBalancer Update spec=map[vip:198.51.100.20] attributes=map[algo:maglev] old=map[algo:rr]"},
		{rule: "L8", what: "first attributes", op: update, edit: `{spec: {attributes: {algo: maglev}}}`, old: `{spec: {attributes: null}}`,
			calls: "shop/clb validateLoadBalancer Update spec=map[vip:198.51.100.20] attributes=map[algo:maglev] old=-"},
		{rule: "11.4 #35 FIX", what: "labels change: no answer is no objection", op: update, edit: `{metadata: {labels: {a: b}}}`, calls: again},
		{rule: "D1", what: "number in a map", op: create, edit: `{spec: {attributes: {weight: 50}}}`, denied: `values of maps are strings, such as "50"`},
		{rule: "2", what: "absent", op: create, edit: `{spec: {attributes: null, scope: null, ensurePolicy: null}}`, calls: "shop/clb validateLoadBalancer Create spec=map[vip:198.51.100.20] attributes=- old=-"},
		{rule: "2", what: "keys in another case", op: create, edit: `{spec: {lbDriver: null, LBDriver: clb}}`, calls: asked},
		{rule: "L1", what: "no driver", op: create, edit: `{spec: {lbDriver: ""}}`, denied: "spec.lbDriver: Required value: name a LoadBalancerDriver"},
		{rule: "L2", what: "prefix outside kube-system", op: create, edit: `{metadata: {name: lbcf-edge}}`, denied: "metadata.name: Invalid value"},
		{rule: "L2", what: "not checked on update", op: update, edit: `{metadata: {name: lbcf-edge}}`, old: `{metadata: {name: lbcf-edge}}`, calls: again},
		{rule: "L2", what: "kube-system may do without", op: create, edit: `{metadata: {namespace: kube-system}, spec: {lbDriver: lbcf-clb}}`,
			calls: "kube-system/lbcf-clb validateLoadBalancer Create spec=map[vip:198.51.100.20] attributes=map[algo:rr] old=-"},
		{rule: "L3", what: "scope of a shared one", op: create, edit: shared,
			calls: "kube-system/lbcf-clb validateLoadBalancer Create spec=map[vip:198.51.100.20] attributes=map[algo:rr] old=-"},
		{rule: "L3", what: "scope without the prefix", op: create, edit: `{metadata: {namespace: kube-system}, spec: {lbDriver: lbcf-clb, scope: ["*"]}}`, denied: "spec.scope: Forbidden"},
		{rule: "L3", what: "scope outside kube-system", op: update, edit: `{spec: {scope: [blog]}}`, denied: "spec.scope: Forbidden"},
		{rule: "L3", what: "empty scope", op: create, edit: `{spec: {scope: []}}`, calls: asked},
		{rule: "L4", what: "minPeriod with IfNotSucc", op: create, edit: `{spec: {ensurePolicy: {policy: IfNotSucc, minPeriod: 1m}}}`, denied: "spec.ensurePolicy.minPeriod: Forbidden"},
		{rule: "L4", what: "minPeriod below 30s", op: update, edit: `{spec: {ensurePolicy: {policy: Always, minPeriod: 29s}}}`, denied: `spec.ensurePolicy.minPeriod: Invalid value: "29s": must be at least 30s`},
		{rule: "L4", what: "minPeriod of 30s", op: create, edit: `{spec: {ensurePolicy: {policy: Always, minPeriod: 30s}}}`, calls: asked},
		{rule: "2.2", what: "other policies are let through", op: create, edit: `{spec: {ensurePolicy: {policy: always, minPeriod: 1s}}}`, warn: "taken for IfNotSucc", calls: asked},
		{rule: "L5", what: "no such driver", op: create, edit: `{spec: {lbDriver: nobody}}`, denied: "shop/nobody: create this LoadBalancerDriver first"},
		{rule: "L5", what: "driver of another namespace", op: create, edit: `{spec: {lbDriver: lbcf-nobody}}`, denied: "kube-system/lbcf-nobody"},
		{rule: "L5", what: "draining driver", op: create, edit: `{spec: {lbDriver: draining}}`, denied: "is draining"},
		{rule: "L5", what: "driver that is being deleted", op: create, edit: `{spec: {lbDriver: leaving}}`, denied: "is being deleted"},
		{rule: "L6", what: "lbDriver changes", op: update, edit: `{spec: {lbDriver: dry}}`, denied: "spec.lbDriver: Forbidden"},
		{rule: "L6", what: "lbSpec changes, checked first", op: update, edit: `{spec: {lbSpec: {vip: "198.51.100.9"}, scope: [blog]}}`, denied: "shop/edge: spec.lbSpec: Forbidden: cannot change: make a LoadBalancer of another name"},
		{rule: "2.2 FIX", what: "null and empty lbSpec are the same", op: update, edit: `{spec: {lbSpec: null}}`, old: `{spec: {lbSpec: {vip: null}}}`, calls: "shop/clb validateLoadBalancer Update spec=- attributes=map[algo:rr] old=map[algo:rr] lenient"},
		{rule: "L7", what: "driver is gone", op: update, edit: `{spec: {lbDriver: nobody}}`, old: `{spec: {lbDriver: nobody}}`, denied: "create this LoadBalancerDriver first"},
		{rule: "L7", what: "draining is fine", op: update, edit: `{spec: {lbDriver: draining}}`, old: `{spec: {lbDriver: draining}}`,
			calls: "shop/draining validateLoadBalancer Update spec=map[vip:198.51.100.20] attributes=map[algo:rr] old=map[algo:rr] lenient"},
		{rule: "D8", what: "being deleted", op: update, edit: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {lbDriver: ""}}`},
		{rule: "L9", what: "protected", op: remove, edit: `{metadata: {labels: {lbcf.tkestack.io/do-not-delete: "false"}}}`, denied: "remove the label first"},
		{rule: "L9", what: "backends do not block", op: remove, view: func(s *shelf) { s.records = append(s.records, record("shop", "clb")) }},
		{rule: "5.9", what: "drivers that take no dry-run calls are not asked", op: create, by: Rules{DryRun: true}, denied: "valid, but not stored", warn: "driver clb was not asked"},
		{rule: "5.9", what: "others are", op: create, edit: `{spec: {lbDriver: dry}}`, by: Rules{DryRun: true},
			calls: "shop/dry validateLoadBalancer Create spec=map[vip:198.51.100.20] attributes=map[algo:rr] old=- dry-run"},
	})
}
