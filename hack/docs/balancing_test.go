// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	balancingRow = regexp.MustCompile(`^\| ([\d., ]+) \|([^|]+)\| ([a-z]+)[^|]*\|(.*)\|$`)
	sections     = regexp.MustCompile(`(?:§|Sections? |Balancing)(\d+)(?:[.]\d+)?(?:(?:, | and )(\d+)(?:[.]\d+)?)*`)
	number       = regexp.MustCompile(`(\d+)(?:[.]\d+)?`)
	admission    = regexp.MustCompile(`\bA\d+\b`)
)

// balancingSections is how many the specification has that ask for anything.
const balancingSections = 24

// TestEveryStatementOfBalancingIsAnswered holds docs/balancing-coverage.md to its own promise: there is a line for each section, what is
// done, or in part, has a test that names the section, and what is open has none.
func TestEveryStatementOfBalancingIsAnswered(t *testing.T) {
	page := string(read(t, filepath.Join(root, "docs", "balancing-coverage.md")))
	folders := map[string]string{}
	for _, m := range shortName.FindAllStringSubmatch(page, -1) {
		folders[m[1]] = m[2]
	}
	answered := map[string]bool{}
	for line := range strings.Lines(page) {
		m := balancingRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if strings.HasPrefix(line, "| 1") || strings.HasPrefix(line, "| 2") {
				t.Errorf("not understood: %s", line)
			}
			continue
		}
		wanted := map[string]bool{}
		for _, n := range number.FindAllStringSubmatch(m[1], -1) {
			wanted[n[1]], answered[n[1]] = true, true
		}
		cell := m[4]
		for short, long := range folders {
			cell = strings.ReplaceAll(cell, "`"+short+"`", "`"+long+"`")
		}
		named := testsOf(t, cell)
		switch m[3] {
		case "done", "part":
			if !namesSection(named, wanted) {
				t.Errorf("§%s,%s: no test of the line names it", m[1], m[2])
			}
		case "open", "otherwise":
			if m[3] == "open" && len(named) > 0 {
				t.Errorf("§%s,%s: it is open, and has tests", m[1], m[2])
			}
		default:
			t.Errorf("§%s,%s: it is %q, which means nothing", m[1], m[2], m[3])
		}
	}
	if len(answered) != balancingSections {
		t.Errorf("%d sections are answered, not %d", len(answered), balancingSections)
	}
}

// namesSection tells whether one of the tests says that it is about one of the sections. Those of admission may name its rules.
func namesSection(said []string, wanted map[string]bool) bool {
	for _, text := range said {
		for _, m := range sections.FindAllString(text, -1) {
			for _, n := range number.FindAllStringSubmatch(m, -1) {
				if wanted[n[1]] {
					return true
				}
			}
		}
		if wanted["3"] && admission.MatchString(text) {
			return true
		}
	}
	return false
}
