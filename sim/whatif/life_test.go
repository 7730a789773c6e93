// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kube"
)

// lifeOf is a cluster of three nodes with three pods of one Service, and nothing of ours.
func lifeOf(t *testing.T) *life {
	t.Helper()
	app := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template: {metadata: {labels: {app: web}}}\n"
	p, _ := planned(t, map[string]string{"a.yaml": lb + app})
	w := engine.New(1)
	server := kube.New(w, kube.Options{Definitions: p.stage.Definitions})
	l := newLife(w, server, p)
	for _, o := range p.stage.Objects {
		if _, err := server.Create("user", o); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// endpoints tells how the endpoints of the Service stand, and which pods answer in truth.
func (l *life) endpoints(t *testing.T, until time.Duration) string {
	t.Helper()
	if err := l.world.Run(until); err != nil {
		t.Fatal(err)
	}
	var out string
	for _, e := range l.kube.Endpoints("default", "web") {
		out += fmt.Sprintf("%s@%s %t/%t ", e.Pod[len("default/"):], e.Node, e.Ready, e.Terminating)
	}
	out += "serve:"
	for _, x := range l.pods {
		if l.serves(x.id(), x.addresses[0]) {
			out += " " + x.name
		}
	}
	return out
}

func TestPodsMoveWithoutAGap(t *testing.T) {
	l := lifeOf(t)
	equal(t, l.endpoints(t, time.Second), "web-1@n1 true/false web-2@n2 true/false serve: web-1 web-2")
	if to := l.move(l.pods[0]); to != "n3" {
		t.Fatal(to)
	}
	equal(t, l.endpoints(t, 1500*time.Millisecond), "web-1@n1 false/true web-2@n2 true/false serve: web-1 web-2")
	equal(t, l.endpoints(t, 3*time.Second), "web-1@n1 false/true web-1-moved@n3 true/false web-2@n2 true/false serve: web-1 web-2 web-1-moved")
	equal(t, l.endpoints(t, 6*time.Second), "web-1-moved@n3 true/false web-2@n2 true/false serve: web-2 web-1-moved")
}

// While the API server is away nobody learns of a pod that died.
func TestNobodyHearsOfADeathWhileTheServerIsAway(t *testing.T) {
	l := lifeOf(t)
	l.endpoints(t, time.Second)
	l.setAway(true)
	l.fail(l.pods[0])
	equal(t, l.endpoints(t, 10*time.Second), "web-1@n1 true/false web-2@n2 true/false serve: web-2")
	l.setAway(false)
	equal(t, l.endpoints(t, 12*time.Second), "web-1@n1 false/false web-2@n2 true/false serve: web-2")
	l.recover(l.pods[0])
	equal(t, l.endpoints(t, 14*time.Second), "web-1@n1 true/false web-2@n2 true/false serve: web-1 web-2")
}

// Kubernetes takes 40 s to give a node up; one that boots before takes its pods along.
func TestNodesDieAndBoot(t *testing.T) {
	l := lifeOf(t)
	l.endpoints(t, time.Second)
	l.world.Publish(event.MachineDown{Machine: "n1"})
	equal(t, l.endpoints(t, 40*time.Second), "web-1@n1 true/false web-2@n2 true/false serve: web-2")
	equal(t, l.endpoints(t, 42*time.Second), "web-1@n1 false/false web-2@n2 true/false serve: web-2")
	l.world.Publish(event.MachineUp{Machine: "n1"})
	equal(t, l.endpoints(t, 43*time.Second), "web-1@n1 false/false web-2@n2 true/false serve: web-2")
	equal(t, l.endpoints(t, 46*time.Second), "web-1@n1 true/false web-2@n2 true/false serve: web-1 web-2")

	l.world.Publish(event.MachineDown{Machine: "n1"})
	l.world.After(time.Second, func() { l.world.Publish(event.MachineUp{Machine: "n1"}) })
	equal(t, l.endpoints(t, 47400*time.Millisecond), "web-1@n1 true/false web-2@n2 true/false serve: web-2")
	equal(t, l.endpoints(t, 48200*time.Millisecond), "web-1@n1 false/false web-2@n2 true/false serve: web-2")
	equal(t, l.endpoints(t, 100*time.Second), "web-1@n1 true/false web-2@n2 true/false serve: web-1 web-2")
}
