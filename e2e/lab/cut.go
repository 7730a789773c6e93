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
	l.separate(addresses(members), addresses(others))
}

// CutFromMachines separates members from machines in both directions; the members still reach each other. It replaces
// an earlier cut.
func (l *Lab) CutFromMachines(members []*Member, machines []*Machine) {
	l.t.Helper()
	l.separate(addresses(members), machineAddresses(machines))
}

// Isolate separates a member from all others and from machines; the switch and the test still reach it. It replaces an
// earlier cut.
func (l *Lab) Isolate(m *Member, machines []*Machine) {
	l.t.Helper()
	l.separate([]string{m.Address}, append(addresses(l.Others(m)), machineAddresses(machines)...))
}

func (l *Lab) separate(these, those []string) {
	l.t.Helper()
	l.Heal()
	a, b := strings.Join(these, ", "), strings.Join(those, ", ")
	rules := fmt.Sprintf("ip saddr { %s } ip daddr { %s } drop\nip saddr { %s } ip daddr { %s } drop", a, b, b, a)
	l.nft(fmt.Sprintf(`table ip %s {
	chain in {
		type filter hook input priority 0;
		%s
	}
	chain out {
		type filter hook output priority 0;
		%s
	}
}`, nftTable, rules, rules))
	l.t.Cleanup(l.Heal)
}

// Heal ends a cut.
func (l *Lab) Heal() {
	l.t.Helper()
	l.nft(fmt.Sprintf("table ip %s {}\ndelete table ip %s", nftTable, nftTable))
}

// Way is what goes from one member to another, and how many of its packets get lost, in percent.
type Way struct {
	From, To *Member
	Lost     int
}

// Lose has packets lost on some ways until Deliver is called with the same name, beside what else is lost and cut. What is lost of a connection
// is sent again, as late as the kernel thinks right.
func (l *Lab) Lose(name string, ways ...Way) {
	l.t.Helper()
	var rules strings.Builder
	for _, w := range ways {
		which := fmt.Sprintf("numgen random mod 100 < %d ", w.Lost)
		if w.Lost >= 100 {
			which = "" // nft takes no condition that always holds
		}
		fmt.Fprintf(&rules, "ip saddr %s ip daddr %s %sdrop\n", w.From.Address, w.To.Address, which)
	}
	l.nft(fmt.Sprintf("table ip %[1]s_%[2]s {}\ndelete table ip %[1]s_%[2]s\ntable ip %[1]s_%[2]s {\nchain in {\ntype filter hook input priority 0;\n%[3]s}\n}",
		nftTable, name, rules.String()))
}

// Deliver ends a Lose.
func (l *Lab) Deliver(name string) {
	l.t.Helper()
	l.nft(fmt.Sprintf("table ip %[1]s_%[2]s {}\ndelete table ip %[1]s_%[2]s", nftTable, name))
}

func addresses(members []*Member) []string {
	var out []string
	for _, m := range members {
		out = append(out, m.Address)
	}
	return out
}

func machineAddresses(machines []*Machine) []string {
	var out []string
	for _, m := range machines {
		out = append(out, m.Address.String())
	}
	return out
}

func (l *Lab) nft(rules string) {
	l.t.Helper()
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("nft: %v: %s", err, out)
	}
}
