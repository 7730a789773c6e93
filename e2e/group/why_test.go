// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/e2e/lab"
)

// askWhy is the answer about one Service, by whichever member is asked.
func askWhy(l *lab.Lab, subject string, flags ...string) (records.Why, error) {
	var d records.Why
	out, stderr, code := l.CLI(append([]string{"why", subject, "-o", "json"}, flags...)...)
	if code != 0 {
		return d, fmt.Errorf("why %s: %s", subject, stderr)
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Services) != 1 {
		return d, fmt.Errorf("why %s: %v in %s", subject, err, out)
	}
	return d, nil
}

// nodesOf tells state and reason of every node for the only address of a Service.
func nodesOf(d records.Why) (out []string) {
	for _, a := range d.Services[0].Addresses {
		for _, n := range a.Nodes {
			out = append(out, n.Node+" "+n.State+" "+n.Code)
		}
	}
	return out
}

// design §11: `why` says which nodes announce an address and why the others do not, by whichever member is asked, and
// what to do about a Service that waits.
func TestWhyFollowsWhatHappens(t *testing.T) {
	l := started(t, lab.Options{})
	nodes := func(want ...string) func() error {
		return func() error {
			d, err := askWhy(l, lab.VIP(0).String())
			if err == nil && !slices.Equal(nodesOf(d), want) {
				err = fmt.Errorf("nodes %q, want %q", nodesOf(d), want)
			}
			return err
		}
	}
	l.Eventually("why of what is announced", nodes("n1 announced serves", "n2 announced serves", "n3 none no-endpoint"))
	l.Manifests.Put("node-1.yaml", fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: n1, labels: {node.kubernetes.io/exclude-from-external-load-balancers: ""}}
status:
  addresses: [{type: InternalIP, address: %s}]
  conditions: [{type: Ready, status: "True"}]
`, lab.NodeAddress(1)))
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2))
	l.Eventually("why of an excluded node", nodes("n1 none node-excluded", "n2 announced serves", "n3 none no-endpoint"))
	l.Manifests.Put("waits.yaml", `apiVersion: v1
kind: Service
metadata: {name: waits, namespace: shop}
spec:
  type: LoadBalancer
  ports: [{name: http, port: 80, protocol: TCP}]
`)
	l.Eventually("why of a Service that waits", func() error {
		for _, m := range []string{"m1", "m2", "m3"} { // each of them hands it to the leader
			d, err := askWhy(l, "waits", "--server", l.Member(m).Address+":7443")
			switch {
			case err != nil:
				return err
			case d.Basis != records.WhySources || d.AnsweredBy != l.Leader().Name:
				return fmt.Errorf("asked %s: by %s, from %s: %s", m, d.AnsweredBy, d.Basis, d.Doubt)
			case d.Services[0].State != records.ServicePending || d.Services[0].Reasons[0].Code != "no-pool" || !strings.Contains(d.Services[0].Reasons[0].Text, "add one"):
				return fmt.Errorf("waits is %+v", d.Services[0])
			}
		}
		return nil
	})
	_, stderr, code := l.CLI("why", "shop/wait")
	if code != 1 {
		t.Errorf("why of what is not there ended with %d", code)
	}
	oneLine(t, stderr, "why shop/wait", "did you mean shop/waits?")

	// Without a quorum the member that is left tells what its record says, and that it may be old.
	left := l.Member("m3")
	for _, m := range l.Others(left) {
		m.Kill()
	}
	l.Eventually("why without a leader", func() error {
		d, err := askWhy(l, "default/svc-0", "--server", left.Address+":7443")
		switch {
		case err != nil:
			return err
		case d.Basis != records.WhyRecord || d.AnsweredBy != "m3" || d.Doubt == "" || d.LastContactMs == nil:
			return fmt.Errorf("by %s, from %s: %q", d.AnsweredBy, d.Basis, d.Doubt)
		}
		return nodes("n1 none node-excluded", "n2 announced serves", "n3 none no-endpoint")()
	})
}
