// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

const allButHealthz = `{name: validateLoadBalancer, timeout: 10s}, {name: createLoadBalancer, timeout: 10s}, {name: ensureLoadBalancer, timeout: 10s}, {name: deleteLoadBalancer, timeout: 10s},
 {name: validateBackend, timeout: 10s}, {name: generateBackendAddr, timeout: 10s}, {name: ensureBackend, timeout: 10s}, {name: deregisterBackend, timeout: 10s}`

func webhooks(more string) string { return "{spec: {webhooks: [" + allButHealthz + more + "]}}" }

// lbcf §6.3
func TestDrivers(t *testing.T) {
	const draining = `{metadata: {labels: {lbcf.tkestack.io/driver-draining: "TRUE"}}}`
	const shared = `{metadata: {name: lbcf-clb, namespace: kube-system, labels: {lbcf.tkestack.io/driver-draining: "true"}}}`
	run(t, Driver, []row{
		{rule: "ok", what: "create", op: create},
		{rule: "ok", what: "update", op: update, edit: `{spec: {acceptDryRunCall: true}}`},
		{rule: "D1", what: "bare number as timeout", op: create, edit: webhooks(", {name: healthz, timeout: 10}"), denied: "cannot read the object"},
		{rule: "D1", what: "stored object", op: update, old: `{spec: {url: 1}}`, denied: "cannot read the stored object"},
		{rule: "D2", what: "prefix outside kube-system", op: create, edit: `{metadata: {name: lbcf-clb}}`, denied: "metadata.name: Invalid value: \"lbcf-clb\": must not begin with lbcf-"},
		{rule: "D2", what: "no prefix in kube-system", op: create, edit: `{metadata: {namespace: kube-system}}`, denied: "must begin with lbcf-"},
		{rule: "D2", what: "generated name", op: create, edit: `{metadata: {name: null, generateName: lbcf-, namespace: kube-system}}`},
		{rule: "D2", what: "on update too", op: update, edit: `{metadata: {name: lbcf-clb}}`, old: `{metadata: {name: lbcf-clb}}`, denied: "must not begin"},
		{rule: "D3", what: "other type", op: create, edit: `{spec: {driverType: webhook}}`, denied: `spec.driverType: Unsupported value: "webhook": supported values: "Webhook"`},
		{rule: "D4", what: "no URL by syntax", op: create, edit: `{spec: {url: "http://[::1"}}`, denied: "spec.url"},
		{rule: "2.1 FIX", what: "empty URL", op: create, edit: `{spec: {url: ""}}`, denied: "write http://HOST"},
		{rule: "2.1 FIX", what: "relative URL", op: create, edit: `{spec: {url: /hooks}}`, denied: "write http://HOST"},
		{rule: "2.1 FIX", what: "other scheme", op: create, edit: `{spec: {url: "ftp://192.0.2.7"}}`, denied: "write http://HOST"},
		{rule: "2.1 FIX", what: "https", op: create, edit: `{spec: {url: "https://192.0.2.7"}}`},
		{rule: "2.1 FIX", what: "a stored URL that LBCF took stays", op: update, edit: `{spec: {url: ""}}`, old: `{spec: {url: ""}}`},
		{rule: "2.1 FIX", what: "password in the URL", op: create, edit: `{spec: {url: "https://u:hunter2@192.0.2.7"}}`,
			denied: `spec.url: Invalid value: "https://192.0.2.7": has a user or a password before the host`},
		{rule: "2.1 FIX", what: "password in what is no URL", op: create, edit: `{spec: {url: "http://u:hunter2@[::1"}}`, denied: `spec.url: Invalid value: "[::1"`},
		{rule: "2.1 FIX", what: "password that is stored stays", op: update, edit: `{spec: {url: "http://u:p@h"}}`, old: `{spec: {url: "http://u:p@h"}}`},
		{rule: "2.1 FIX", what: "password that goes", op: update, edit: `{spec: {url: "http://h"}}`, old: `{spec: {url: "http://u:p@h"}}`},
		{rule: "D7", what: "password that comes", op: update, edit: `{spec: {url: "http://u:hunter2@h"}}`, old: `{spec: {url: "http://h"}}`, denied: "spec.url: Forbidden: cannot change"},
		{rule: "D5", what: "unknown webhook", op: create, edit: webhooks(", {name: healthz, timeout: 10s}, {name: nonesuch, timeout: 10s}"), denied: `spec.webhooks[9].name: Unsupported value: "nonesuch"`},
		{rule: "3.2 FIX", what: "judgePodDeregister may be listed", op: create, edit: webhooks(", {name: healthz, timeout: 10s}, {name: judgePodDeregister, timeout: 20s}")},
		{rule: "D6", what: "a webhook is missing", op: create, edit: webhooks(""), denied: "lacks healthz"},
		{rule: "D6", what: "a webhook is missing on update", op: update, edit: webhooks(""), old: webhooks(""), denied: "lacks healthz"},
		{rule: "D6", what: "timeout above 1m", op: create, edit: webhooks(", {name: healthz, timeout: 61s}"), denied: `spec.webhooks[8].timeout: Invalid value: "1m1s"`},
		{rule: "D6", what: "timeout of 1m", op: create, edit: webhooks(", {name: healthz, timeout: 60s}")},
		{rule: "D6", what: "timeout 0", op: create, edit: webhooks(", {name: healthz, timeout: 0s}"), denied: `Invalid value: "0s"`},
		{rule: "2.1 FIX", what: "negative timeout", op: create, edit: webhooks(", {name: healthz, timeout: -1s}"), denied: `Invalid value: "-1s"`},
		{rule: "2.1 FIX", what: "a negative timeout that is stored stays", op: update, edit: webhooks(", {name: healthz, timeout: -1s}"), old: webhooks(", {name: healthz, timeout: -1s}")},
		{rule: "2.1 FIX", what: "no timeout means the default", op: create, edit: webhooks(", {name: healthz}")},
		{rule: "2.1 FIX", what: "duplicate", op: create, edit: webhooks(", {name: healthz, timeout: 1s}, {name: healthz, timeout: 2s}"), denied: `spec.webhooks[9].name: Duplicate value: "healthz"`},
		{rule: "2.1 FIX", what: "a duplicate that is stored stays", op: update, edit: webhooks(", {name: healthz, timeout: 1s}, {name: healthz, timeout: 2s}"), old: webhooks(", {name: healthz, timeout: 1s}, {name: healthz, timeout: 2s}")},
		{rule: "D7", what: "url", op: update, edit: `{spec: {url: "http://192.0.2.8"}}`, denied: "spec.url: Forbidden: cannot change"},
		{rule: "D7", what: "driverType", op: update, old: `{spec: {driverType: Other}}`, denied: "spec.driverType: Forbidden: cannot change"},
		{rule: "D8", what: "update of what is being deleted", op: update, edit: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {url: ""}}`},
		{rule: "D10", what: "not draining", op: remove, denied: "lbcf.tkestack.io/driver-draining]: Forbidden"},
		{rule: "D10", what: "draining is false", op: remove, edit: `{metadata: {labels: {lbcf.tkestack.io/driver-draining: "false"}}}`, denied: "driver-draining"},
		{rule: "D11", what: "LoadBalancers of its namespace", op: remove, edit: draining, denied: "in use by 3 LoadBalancer(s): delete these first"},
		{rule: "D11", what: "shared, LoadBalancers anywhere", op: remove, edit: shared, denied: "in use by 3 LoadBalancer(s)",
			view: func(s *shelf) { s.LoadBalancer("blog", "theirs").Spec.LBDriver = "lbcf-clb" }},
		{rule: "D12", what: "BackendRecords", op: remove, edit: draining, denied: "in use by 1 BackendRecord(s)", view: func(s *shelf) {
			s.lbs = nil
			s.records = []*v1beta1.BackendRecord{record("shop", "clb"), record("shop", "other"), record("blog", "clb")}
		}},
		{rule: "D12 FIX", what: "Binds without records", op: remove, edit: draining, denied: "in use by 1 Bind(s)", view: func(s *shelf) {
			s.lbs, s.binds = nil, []*v1.Bind{of[v1.Bind](bindText)}
		}},
		{rule: "D12 FIX", what: "load balancers that left a Bind", op: remove, edit: draining, denied: "in use by 1 Bind(s)", view: func(s *shelf) {
			b := of[v1.Bind](bindText)
			b.Spec.LoadBalancers, b.Status.LoadBalancerStatuses = nil, []v1.TargetLoadBalancerStatus{{Name: "edge-a", Driver: "clb"}}
			s.lbs, s.binds = nil, []*v1.Bind{b}
		}},
		{rule: "D12 FIX", what: "judges of a group and of a Bind", op: remove, edit: draining, denied: "in use by 1 Bind(s), 1 BackendGroup(s), by deregisterWebhook", view: func(s *shelf) {
			b, g := of[v1.Bind](bindText), of[v1beta1.BackendGroup](groupText)
			b.Spec.LoadBalancers = nil
			b.Spec.DeregisterWebhook = &v1beta1.DeregisterWebhook{DriverName: "clb"}
			g.Spec.DeregisterWebhook = &v1beta1.DeregisterWebhook{DriverName: "clb"}
			s.lbs, s.binds, s.groups = nil, []*v1.Bind{b}, []*v1beta1.BackendGroup{g}
		}},
		{rule: "D12", what: "unused", op: remove, edit: draining, view: func(s *shelf) { s.lbs = nil }},
		{rule: "6.1", what: "other operations", op: "CONNECT", edit: `{spec: null}`},
		{rule: "5.9", what: "dry-run refuses what is valid", op: create, by: Rules{DryRun: true}, denied: "valid, but not stored"},
		{rule: "5.9", what: "dry-run says what is not", op: create, edit: `{spec: {url: ""}}`, by: Rules{DryRun: true}, denied: "spec.url"},
		{rule: "5.9", what: "dry-run refuses deletion", op: remove, edit: draining, by: Rules{DryRun: true}, denied: "valid, but not stored", view: func(s *shelf) { s.lbs = nil }},
		{rule: "5.9 FIX", what: "dry-run refuses updates of what is being deleted", op: update, edit: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`, by: Rules{DryRun: true}, denied: "valid, but not stored"},
	})
}

func record(namespace, driver string) *v1beta1.BackendRecord {
	return &v1beta1.BackendRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: v1beta1.BackendRecordSpec{LBDriver: driver}}
}

// lbcf §6.1: LBCF looks the object up by the name of the request; a deletion of a collection has none.
func TestDeletionIsJudgedByTheObjectThatGoes(t *testing.T) {
	view := town()
	r := request(t, Driver, remove, edited(t, Driver, ""), nil)
	r.Name = ""
	if got := Validate(r, view, Rules{}); got.Denied == "" {
		t.Error("deleted with its collection, though it does not drain")
	}
	r = Request{Kind: Driver, Operation: remove, Namespace: "shop", Name: "clb"}
	if got := Validate(r, view, Rules{}); got.Denied == "" {
		t.Error("an old API server sends no object: deleted, though it does not drain")
	}
	r.Name = "gone" // D9
	if got := Validate(r, view, Rules{}); got.Denied != "" {
		t.Errorf("not to be found: %s", got.Denied)
	}
	for _, k := range []Kind{LoadBalancer, BackendGroup} { // L9, G10, INV-20
		r := request(t, k, remove, edited(t, k, `{metadata: {labels: {lbcf.tkestack.io/do-not-delete: ""}}}`), nil)
		r.Name = ""
		if got := Validate(r, view, Rules{}); got.Denied == "" {
			t.Errorf("%s deleted with its collection, though protected", k)
		}
	}
}

// What cannot be read can still be deleted.
func TestDeletionReadsOnlyMetadata(t *testing.T) {
	for _, k := range []Kind{Driver, LoadBalancer, BackendGroup, Bind} {
		view := town()
		view.lbs = nil
		r := request(t, k, remove, edited(t, k, `{metadata: {labels: {lbcf.tkestack.io/driver-draining: "true"}}, spec: 7}`), nil)
		if got := Validate(r, view, Rules{}); got.Denied != "" {
			t.Error(got.Denied)
		}
	}
}
