// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

// Each of so many nodes dies so often. Who died is held down for longer each time, and has come back when its turn
// comes again.
const (
	nodeDownNodes = 10
	nodeDownEach  = 2
)

// nodeDown has a node die, which is a network namespace that drops every packet from then on, and takes the time until
// the switch leads to it no more. It dies at any moment between two heartbeats; that the last one was a little while
// ago then is part of the figure.
func nodeDown(t *bench) figures {
	l := lab.New(t, lab.Options{Steered: true, Log: "warn"})
	var machines []*lab.Machine
	var numbers []int
	for n := 1; n <= nodeDownNodes; n++ {
		l.Manifests.Node(n, true)
		machines, numbers = append(machines, l.Machine(n)), append(numbers, n)
	}
	prefix := fsm.HostPrefix(lab.VIP(0))
	l.Manifests.Service(0, numbers...)
	l.Bird.WaitEstablished("m1", "m2", "m3")
	leads := func(m *lab.Machine) bool { return slices.Contains(l.Bird.NextHops(prefix), m.Address) }
	var f figures
	for i := range nodeDownNodes * nodeDownEach {
		victim := machines[i%len(machines)]
		l.Bird.Wait(fmt.Sprintf("path to %s", victim.Name), func() bool { return leads(victim) })
		time.Sleep(time.Duration(i%7) * 30 * time.Millisecond) // another phase of the heartbeats each time
		victim.Fail()
		begin := time.Now()
		for leads(victim) {
			if time.Since(begin) > soon {
				t.Fatal(fmt.Sprintf("run %d: the switch still leads to %s after %s", i, victim.Name, soon))
			}
			time.Sleep(time.Millisecond)
		}
		f.samples = append(f.samples, milliseconds(time.Since(begin)))
		victim.Reboot()
	}
	f.detail = map[string]any{"runs_ms": f.samples, "max_ms": slices.Max(f.samples), "heartbeat_ms": 200}
	return f
}
