// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"
)

// entries is a merge patch of the load balancers of a Bind.
func entries(list ...string) string {
	return "{spec: {loadBalancers: [" + strings.Join(list, ", ") + "]}}"
}

// lbcf §6.6
func TestBinds(t *testing.T) {
	const a = `{name: edge-a, driver: clb, spec: {vip: 198.51.100.21}, attributes: {algo: rr}}`
	const asked = "shop/clb validateLoadBalancer Create spec=map[vip:198.51.100.21] attributes=map[algo:rr] old=-\n" +
		"shop/clb validateBackend Create Pod info=map[vip:198.51.100.21] parameters=map[weight:50] old=-"
	again := strings.NewReplacer("Create", "Update", "attributes=map[algo:rr] old=-", "attributes=map[algo:rr] old=map[algo:rr]", "parameters=map[weight:50] old=-", "parameters=map[weight:50] old=map[weight:50]").Replace(asked)
	const created = `{status: {loadBalancerStatuses: [{name: edge-a, driver: clb, lbInfo: {id: x}, conditions: [{type: Created, status: "True"}]}]}}`
	run(t, Bind, []row{
		{rule: "B8", what: "create asks drivers", op: create, calls: asked},
		{rule: "B8", what: "update asks drivers", op: update, old: `{spec: {loadBalancers: [{name: edge-a, driver: clb, spec: {vip: 198.51.100.21}, attributes: {algo: maglev}}], parameters: {weight: "80"}}}`,
			calls: "shop/clb validateLoadBalancer Update spec=map[vip:198.51.100.21] attributes=map[algo:rr] old=map[algo:maglev]\n" +
				"shop/clb validateBackend Update Pod info=map[vip:198.51.100.21] parameters=map[weight:50] old=map[weight:80]"},
		{rule: "B8", what: "every entry", op: create, edit: entries(a, `{name: edge-b, driver: lbcf-clb, spec: {vip: v}}`),
			calls: asked + "\nkube-system/lbcf-clb validateLoadBalancer Create spec=map[vip:v] attributes=- old=-\nkube-system/lbcf-clb validateBackend Create Pod info=map[vip:v] parameters=map[weight:50] old=-"},
		{rule: "B1", what: "no load balancers", op: create, edit: `{spec: {loadBalancers: null, pods: null}}`, denied: "Bind shop/shop: spec.loadBalancers: Required value: name at least one load balancer"},
		{rule: "B2", what: "upper case in a name", op: create, edit: entries(`{name: Edge, driver: clb, spec: {a: b}}`), denied: "spec.loadBalancers[0].name: Invalid value"},
		{rule: "B2", what: "a dash alone", op: create, edit: entries(`{name: "-", driver: clb, spec: {a: b}}`), denied: "spec.loadBalancers[0].name"},
		{rule: "B2", what: "64 characters", op: create, edit: entries(`{name: ` + strings.Repeat("a", 64) + `, driver: clb, spec: {a: b}}`), denied: "spec.loadBalancers[0].name"},
		{rule: "B2", what: "a stored name that LBCF took stays", op: update, edit: entries(`{name: edge-, driver: clb, spec: {a: c}}`), old: entries(`{name: edge-, driver: clb, spec: {a: b}}`),
			calls: "shop/clb validateLoadBalancer Update spec=map[a:c] attributes=- old=-\nshop/clb validateBackend Update Pod info=map[a:c] parameters=map[weight:50] old=map[weight:50]"},
		{rule: "B2", what: "duplicate name", op: create, edit: entries(a, a), denied: "spec.loadBalancers[1].name: Duplicate value"},
		{rule: "B2", what: "blank driver", op: create, edit: entries(`{name: edge, driver: " ", spec: {a: b}}`), denied: "spec.loadBalancers[0].driver: Required value"},
		{rule: "B2", what: "empty spec", op: create, edit: entries(`{name: edge, driver: clb, spec: {}}`), denied: "spec.loadBalancers[0].spec: Required value"},
		{rule: "B3", what: "no selection", op: create, edit: `{spec: {pods: {byLabel: null}}}`, denied: "spec.pods: Required value"},
		{rule: "B3", what: "both selections", op: create, edit: `{spec: {pods: {byName: [web-0]}}}`, calls: asked},
		{rule: "B3", what: "empty selector", op: create, edit: `{spec: {pods: {byLabel: {selector: null}}}}`, denied: "spec.pods.byLabel.selector: Required value"},
		{rule: "2.5 FIX", what: "illegal label", op: create, edit: `{spec: {pods: {byLabel: {selector: {app: "a b"}}}}}`, denied: "spec.pods.byLabel.selector[app]"},
		{rule: "2.5 FIX", what: "an illegal label that is stored stays", op: update, edit: `{spec: {pods: {byLabel: {selector: {app: "a b"}}}, parameters: {weight: "50"}}}`,
			old: `{spec: {pods: {byLabel: {selector: {app: "a b"}}}, parameters: null}}`, calls: strings.Replace(again, "old=map[weight:50]", "old=-", 1)},
		{rule: "B3", what: "no ports", op: create, edit: `{spec: {pods: {ports: []}}}`, denied: "spec.pods.ports: Required value"},
		{rule: "B3", what: "port 0", op: create, edit: `{spec: {pods: {ports: [{port: 0, protocol: TCP}]}}}`, denied: "spec.pods.ports[0].port"},
		{rule: "2.5 FIX", what: "port 65536", op: create, edit: `{spec: {pods: {ports: [{port: 65536, protocol: TCP}]}}}`, denied: "spec.pods.ports[0].port"},
		{rule: "2.5 FIX", what: "negative port", op: create, edit: `{spec: {pods: {ports: [{port: -1, protocol: TCP}]}}}`, denied: "spec.pods.ports[0].port"},
		{rule: "B3", what: "blank protocol", op: create, edit: `{spec: {pods: {ports: [{port: 80}]}}}`, denied: "spec.pods.ports[0].protocol"},
		{rule: "B3", what: "protocol in any case", op: create, edit: `{spec: {pods: {ports: [{port: 80, protocol: uDp}]}}}`, calls: asked},
		{rule: "B4 FIX", what: "a legal policy", op: create, edit: `{spec: {deregisterPolicy: IfNotRunning}}`, calls: asked},
		{rule: "B4 FIX", what: "an illegal one", op: create, edit: `{spec: {deregisterPolicy: Never}}`, denied: "spec.deregisterPolicy: Unsupported value"},
		{rule: "B4 FIX", what: "an illegal one that is stored stays", op: update, edit: `{spec: {deregisterPolicy: Never, parameters: {weight: "50"}}}`, old: `{spec: {deregisterPolicy: Never, parameters: null}}`,
			warn: "taken for IfNotReady", calls: strings.Replace(again, "old=map[weight:50]", "old=-", 1)},
		{rule: "B5", what: "Webhook without one", op: create, edit: `{spec: {deregisterPolicy: Webhook}}`, denied: "spec.deregisterWebhook: Required value"},
		{rule: "B5", what: "no driver, whatever the policy", op: create, edit: `{spec: {deregisterWebhook: {}}}`, denied: "spec.deregisterWebhook.driverName"},
		{rule: "B5", what: "failurePolicy", op: create, edit: `{spec: {deregisterWebhook: {driverName: clb, failurePolicy: Never}}}`, denied: "spec.deregisterWebhook.failurePolicy"},
		{rule: "B5", what: "all well", op: create, edit: `{spec: {deregisterPolicy: Webhook, deregisterWebhook: {driverName: clb, failurePolicy: DoNothing}}}`, calls: asked},
		{rule: "B6", what: "no policy", op: create, edit: `{spec: {ensurePolicy: {resyncPeriodInSeconds: 60}}}`, denied: "spec.ensurePolicy.policy"},
		{rule: "B6", what: "period below 10", op: create, edit: `{spec: {ensurePolicy: {policy: Always, resyncPeriodInSeconds: 9}}}`, denied: "spec.ensurePolicy.resyncPeriodInSeconds"},
		{rule: "B6", what: "period of 10", op: create, edit: `{spec: {ensurePolicy: {policy: Always, resyncPeriodInSeconds: 10}}}`, calls: asked},
		{rule: "2.5", what: "minPeriod is ignored", op: create, edit: `{spec: {ensurePolicy: {policy: Always, minPeriod: 1s}}}`, calls: asked},
		{rule: "B7", what: "same spec", op: update, edit: `{metadata: {labels: {a: b}}, spec: {loadBalancers: [{name: edge, driver: nobody}]}}`, old: `{spec: {loadBalancers: [{name: edge, driver: nobody, spec: {}}]}}`},
		{rule: "B8", what: "no such driver", op: create, edit: entries(`{name: edge, driver: nobody, spec: {a: b}}`), denied: "spec.loadBalancers[0].driver: Not found"},
		{rule: "B8", what: "a later driver is missing", op: create, edit: entries(a, `{name: edge, driver: nobody, spec: {a: b}}`), denied: "spec.loadBalancers[1].driver: Not found"},
		{rule: "B8", what: "draining, on create", op: create, edit: entries(`{name: edge, driver: draining, spec: {a: b}}`), denied: "is draining"},
		{rule: "B8", what: "draining, on update", op: update, edit: `{spec: {parameters: null, loadBalancers: [{name: edge, driver: draining, spec: {a: b}}]}}`, old: entries(`{name: edge, driver: draining, spec: {a: b}}`), denied: "is draining"},
		{rule: "B8", what: "leaving", op: create, edit: entries(`{name: edge, driver: leaving, spec: {a: b}}`), denied: "is being deleted"},
		{rule: "2.5 FIX", what: "spec of a created one", op: update, edit: entries(`{name: edge-a, driver: clb, spec: {vip: other}}`), old: created, denied: "spec.loadBalancers[0].spec: Forbidden"},
		{rule: "5.8 FIX", what: "driver of a created one", op: update, edit: entries(`{name: edge-a, driver: dry, spec: {vip: 198.51.100.21}}`), old: created, denied: "spec.loadBalancers[0].driver: Forbidden"},
		{rule: "2.5 FIX", what: "spec of one that is not created", op: update, edit: entries(`{name: edge-a, driver: clb, spec: {vip: other}}`),
			calls: "shop/clb validateLoadBalancer Update spec=map[vip:other] attributes=- old=map[algo:rr]\nshop/clb validateBackend Update Pod info=map[vip:other] parameters=map[weight:50] old=map[weight:50]"},
		{rule: "D8", what: "being deleted", op: update, edit: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {loadBalancers: []}}`},
		{rule: "B9", what: "delete", op: remove, edit: `{metadata: {labels: {lbcf.tkestack.io/do-not-delete: ""}}}`},
		{rule: "5.9", what: "dry-run asks no driver", op: create, edit: entries(`{name: edge, driver: dry, spec: {a: b}}`), by: Rules{DryRun: true}, denied: "valid, but not stored"},
		{rule: "5.9 FIX", what: "dry-run refuses updates", op: update, edit: `{spec: {parameters: null}}`, by: Rules{DryRun: true}, denied: "valid, but not stored"},
	})
}
