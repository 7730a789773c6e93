// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
)

// SECURITY.md says who may call what, as the table does.
func TestSecuritySaysWhoMayCallWhat(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begun := strings.Cut(string(page), "<!-- calls -->\n")
	has, _, ended := strings.Cut(rest, "<!-- /calls -->")
	if want := callsByRole(accessTable()); !begun || !ended || has != want {
		t.Errorf("between <!-- calls --> and <!-- /calls --> SECURITY.md has to have\n%s", want)
	}
}

// callsByRole writes a table of calls and roles.
func callsByRole(table map[string]access) string {
	roles := append(pki.Roles(), Nobody)
	var out strings.Builder
	out.WriteString("| call |")
	for _, role := range roles {
		fmt.Fprintf(&out, " %s |", role)
	}
	fmt.Fprintf(&out, " time | message |\n|---|%s---|---|\n", strings.Repeat("---|", len(roles)))
	for _, procedure := range slices.Sorted(maps.Keys(table)) {
		rule := table[procedure]
		fmt.Fprintf(&out, "| %s |", strings.NewReplacer("/fairlead.v1.", "", "Service/", " ").Replace(procedure))
		for _, role := range roles {
			may := ""
			switch {
			case !slices.Contains(rule.roles, role):
			case rule.own != anyones:
				may = " own"
			default:
				may = " yes"
			}
			out.WriteString(may + " |")
		}
		fmt.Fprintf(&out, " %s | %s |\n", within(rule.within), sized(rule.maxMessage))
	}
	return out.String()
}

func within(d time.Duration) string {
	switch {
	case d == 0:
		return "stream"
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func sized(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}
