// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
)

func TestGroupAgreesAndComesBackFromDisk(t *testing.T) {
	inBubble(t, testGroupAgreesAndComesBackFromDisk)
}

func testGroupAgreesAndComesBackFromDisk(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	for i := range 20 {
		mustPropose(t, g.leader(), put(i))
	}
	g.settle()

	g.stopAll()
	for _, name := range g.names() {
		g.start(name)
	}
	g.leader()
	g.settle()
	for _, name := range g.names() {
		for i := range 20 {
			if !has(g.members[name].state, i) {
				t.Fatalf("%s lost policy %d", name, i)
			}
		}
	}
}

func TestFollowerForwardsToTheLeader(t *testing.T) { inBubble(t, testFollowerForwardsToTheLeader) }

func testFollowerForwardsToTheLeader(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.followers()[0], put(1))
	g.settle()
	if !has(g.leader().state, 1) {
		t.Fatal("the forwarded command is not in the record")
	}
}
