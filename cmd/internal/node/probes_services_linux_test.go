// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/convert"
)

// K50: endpoints of a Service that asks for it are probed by real connections; what the node finds out is the group's verdict, by which the plan
// leaves an endpoint out, and has it back; new connections follow. All are used where none answers, and nothing more is written to the record
// while nothing changes.
// Rule: K50.
func TestEndpointsThatDoNotAnswerAreLeftOut(t *testing.T) {
	l := newSockLab(t)
	l.enter()
	vip, servers := netip.MustParseAddrPort("192.0.2.1:80"), hosts(t, 2)
	o := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: vip.Addr().String()}}
	o.Annotations = map[string]string{convert.AnnotationHealthCheck: "{intervalSeconds: 1, timeoutSeconds: 20, unhealthyThreshold: 1}"}
	plan := func() { planned(t, l.group, o, servers[0].at, servers[1].at) }
	l.group.Apply(t, &fsm.PutNode{ID: "n1", UID: "n1"})
	plan()
	l.judges()
	agent := start(t, l.config)
	eventually := func(want string) {
		t.Helper()
		testkit.Until(t, want, func() bool {
			s, _ := fsm.Get[*fsm.Service](l.group.Read(), fsm.TableServices, "shop/web")
			got := ""
			for _, v := range s.Verdicts() {
				got += fmt.Sprintf("%s %t %d/%d ", v.Address, v.Healthy, v.Say, v.Of)
			}
			return got == want
		})
		plan()
	}
	eventually("127.0.0.2 true 1/1 127.0.0.3 true 1/1 ")
	l.soon(vip, "127.0.0.2 127.0.0.3")
	servers[0].stop()
	eventually("127.0.0.2 false 1/1 127.0.0.3 true 1/1 ")
	l.soon(vip, "127.0.0.3")
	testkit.Until(t, "that is written down for people", func() bool {
		text, err := os.ReadFile(filepath.Join(l.config.StateDir, node.ProbesFile))
		return err == nil && strings.Contains(string(text), `"policy":"Service/shop/web","address":"127.0.0.2"`) && strings.Contains(string(text), `"opinion":"bad","why":"dial tcp`)
	})
	before, _ := fsm.Get[*fsm.Service](l.group.Read(), fsm.TableServices, "shop/web")
	time.Sleep(2 * time.Second) // of probes
	plan()
	if after, _ := fsm.Get[*fsm.Service](l.group.Read(), fsm.TableServices, "shop/web"); after != before {
		t.Errorf("nothing changed, and it was written to the record again: %+v, and before %+v", after, before)
	}
	servers[1].stop()
	servers[0].start() // which the group thinks is bad until it was asked
	eventually("127.0.0.2 true 1/1 127.0.0.3 false 1/1 ")
	l.soon(vip, "127.0.0.2")
	o.Annotations = nil
	plan()
	if s, _ := fsm.Get[*fsm.Service](l.group.Read(), fsm.TableServices, "shop/web"); len(s.Verdicts()) > 0 || !s.Endpoints[1].Ready {
		t.Errorf("it is not probed any more, and %+v is thought of %+v", s.Verdicts(), s.Endpoints)
	}
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}
