// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/e2e/lab"
)

const torSecret = "Secret/network/tor"

// signedBird is a switch that knows nodes 1 and 2 by their passwords; without one, a session with a node is not signed.
func signedBird(t *testing.T, l *lab.Lab, one, two string) birdtest.Config {
	t.Helper()
	c := birdtest.Config{Address: l.SwitchAddress(), NoAddPath: true}
	c.Port = birdtest.FreePort(t, c.Address)
	for i, password := range []string{one, two} {
		c.Neighbors = append(c.Neighbors, birdtest.Neighbor{
			Name: fmt.Sprint("n", i+1), Address: lab.NodeAddress(i + 1), ASN: lab.ASN, Password: password,
		})
	}
	return c
}

// A node signs its session with the password that it has in a file. One that has none has no session, though the switch would take
// one that is not signed: its operator is told which node, and what to do; the sessions of others go on. Another password counts,
// and a file that is gone ends nothing, not even over a restart. No password comes to the group, or into a log.
func TestNodesSignTheirSessions(t *testing.T) {
	l, machines := withMachines(t, 2)
	conf := signedBird(t, l, "s3cret-one", "")
	b := birdtest.Start(t, conf)
	tor(l, b, ", passwordSecret: {name: tor, namespace: network}")
	machines[0].Password(torSecret, "s3cret-one\n")
	for _, m := range machines {
		m.Speak(fmt.Sprintf("bgp: {asn: %d, passwordDir: %s}", lab.ASN, m.PasswordDir()))
	}
	b.WaitEstablished("n1")
	b.WaitNextHops(prefix(0), lab.NodeAddress(1))
	l.Eventually("why", func() error {
		out, _, _ := l.CLI("why", lab.VIP(0).String())
		for _, want := range []string{"established with 1 of 2 nodes", "n2 left out", "put it into the file " + torSecret} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("%q is not in %s", want, out)
			}
		}
		return nil
	})
	if b.Sessions()["n2"].Established {
		t.Error("n2 peers without the password")
	}

	before, stop := peered(b, "n1"), b.Watch(prefix(0))
	conf.Neighbors[1].Password = "s3cret-two"
	b.Configure(conf)
	machines[1].Password(torSecret, "s3cret-two")
	b.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	if after := peered(b, "n1"); after != before {
		t.Errorf("the session of n1 was %s, is %s", before, after)
	}

	opened := b.Sessions()["n2"].Opened
	conf.Neighbors[1].Password = "s3cret-three"
	b.Configure(conf)
	machines[1].Password(torSecret, "s3cret-three")
	b.Wait("a session by the next password", func() bool {
		s := b.Sessions()["n2"]
		return s.Established && s.Opened != opened
	})
	b.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))

	machines[0].Password(torSecret, "") // gone
	l.Eventually("word of the file", func() error {
		if !strings.Contains(machines[0].Log(), `"goes_on_with_former":true`) {
			return fmt.Errorf("the agent's log does not tell of it")
		}
		return nil
	})
	if after := peered(b, "n1"); after != before {
		t.Errorf("the session of n1 was %s, is %s", before, after)
	}
	machines[0].StopAgent()
	waitPaths(b, prefix(0), map[string]string{"n1": "0 true", "n2": "0 false"})
	machines[0].StartAgent()
	waitPaths(b, prefix(0), map[string]string{"n1": "0 false", "n2": "0 false"})
	if n, total := birdtest.Gaps(stop()); n > 0 {
		t.Errorf("%d gaps, %s in all", n, total)
	}
	for _, m := range machines {
		if strings.Contains(m.Log(), "s3cret") {
			t.Errorf("the log of %s has a password", m.Name)
		}
	}
	nowhereInTheGroup(t, l, "s3cret")
}

// nowhereInTheGroup looks for a text in all that members keep, and in what they log.
func nowhereInTheGroup(t *testing.T, l *lab.Lab, text string) {
	t.Helper()
	for _, m := range l.Members {
		if strings.Contains(m.Log(), text) {
			t.Errorf("the log of %s has %q", m.Name, text)
		}
		err := filepath.WalkDir(m.DataDir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), text) {
				t.Errorf("%s has %q", path, text)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
