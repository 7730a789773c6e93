// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os/exec"
	"strings"
)

// nftTable is the lab's own table, in the lab's own namespace.
const nftTable = "fairlead_lab"

// Cut separates members from others in both directions; the switch and the test still reach all of them. It
// replaces an earlier cut.
func (l *Lab) Cut(members, others []*Member) {
	l.t.Helper()
	l.Heal()
	l.nft(fmt.Sprintf(`table ip %s {
	chain out {
		type filter hook output priority 0;
		ip saddr { %s } ip daddr { %s } drop
		ip saddr { %s } ip daddr { %s } drop
	}
}`, nftTable, addresses(members), addresses(others), addresses(others), addresses(members)))
	l.t.Cleanup(l.Heal)
}

// Heal ends a cut.
func (l *Lab) Heal() {
	l.t.Helper()
	l.nft(fmt.Sprintf("table ip %s {}\ndelete table ip %s", nftTable, nftTable))
}

func addresses(members []*Member) string {
	var out []string
	for _, m := range members {
		out = append(out, m.Address)
	}
	return strings.Join(out, ", ")
}

func (l *Lab) nft(rules string) {
	l.t.Helper()
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("nft: %v: %s", err, out)
	}
}
