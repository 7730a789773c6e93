// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/sim/check"
)

// pages are what code and documentation refer to by the number of a section, as in "design §6".
var pages = map[string]string{
	"design": "docs/design.md", "lbcf": "docs/spec/lbcf.md", "balancing": "docs/spec/balancing.md",
	"kube-loadbalancer-controller": "docs/spec/kube-loadbalancer-controller.md",
}

var (
	sectionSign = regexp.MustCompile(`§ ?(\d+(?:\.\d+)*)`)
	// standards are documents of others, whose sections nobody checks.
	standards   = `RFC \d+,?|Raft|Ousterhout,|YAML [\d.]+|NSDI \d+,|WebAssembly [\d.]+,`
	named       = regexp.MustCompile(`(?i:(design|lbcf|balancing|kube-loadbalancer-controller)) $|(` + standards + `) $`)
	sectionWord = regexp.MustCompile(`\bsection \d`)
	heading     = regexp.MustCompile(`^#+ (\d+(?:\.\d+)*)\.? `)
	listItem    = regexp.MustCompile(`^(\d+)\. `)
	ruleRow     = regexp.MustCompile(`(?m)^\| ([SL]\d+) \|`)
)

// Every reference to a section names its document, and the document has that section: "design §6", "lbcf §3.1, §3.3", "RFC 4271 §9.1".
func TestEverySectionThatIsReferredToIsThere(t *testing.T) {
	sections := map[string][]string{}
	for name, file := range pages {
		sections[name] = sectionsOf(string(read(t, filepath.Join(root, file))))
	}
	found := 0
	for _, file := range tracked(t) {
		if strings.HasPrefix(file, "docs/spec/") || strings.Contains(file, "/crds/") || file == "CHANGELOG.md" || strings.HasSuffix(file, "-coverage.md") {
			continue // within a specification its own sections are meant; definitions are generated of comments, and broken where they like
		}
		number := 0
		for line := range strings.Lines(string(read(t, filepath.Join(root, file)))) {
			number++
			if sectionWord.MatchString(line) && !regexp.MustCompile(standards).MatchString(line) {
				t.Errorf("%s:%d: write the document and § before the number: %s", file, number, strings.TrimSpace(line))
			}
			of, after := "", 0
			for _, at := range sectionSign.FindAllStringSubmatchIndex(line, -1) {
				found++
				section := line[at[2]:at[3]]
				if m := named.FindStringSubmatch(line[after:at[0]]); m != nil {
					of = strings.ToLower(m[1] + m[2])
				}
				after = at[1]
				switch known, ours := sections[of]; {
				case of == "" && file != "docs/design.md" && file != "hack/docs/references_test.go":
					t.Errorf("%s:%d: §%s of which document? Name it before the sign", file, number, section)
				case of == "" && file == "docs/design.md" && !slices.Contains(sections["design"], section), ours && !slices.Contains(known, section):
					t.Errorf("%s:%d: %s has no section %s", file, number, pages[of], section)
				}
			}
		}
	}
	if found < 400 {
		t.Errorf("only %d references were found: are they read?", found)
	}
}

// sectionsOf lists the numbers of headings, and those of the items of a section's list behind its own.
func sectionsOf(page string) (out []string) {
	section := ""
	for line := range strings.Lines(page) {
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
			out = append(out, section)
		} else if m := listItem.FindStringSubmatch(line); m != nil {
			out = append(out, section+"."+m[1])
		}
	}
	return out
}

// The rules of the design are those that checkers have.
func TestTheDesignListsTheRulesThatAreChecked(t *testing.T) {
	var listed []string
	for _, m := range ruleRow.FindAllStringSubmatch(string(read(t, filepath.Join(root, pages["design"]))), -1) {
		listed = append(listed, m[1])
	}
	for _, rule := range check.Rules() {
		if rule.ID != "model" && !slices.Contains(listed, rule.ID) {
			t.Errorf("docs/design.md §9 lacks %s: %s", rule.ID, rule.Text)
		}
		listed = slices.DeleteFunc(listed, func(id string) bool { return id == rule.ID })
	}
	if len(listed) > 0 {
		t.Errorf("docs/design.md §9 has %v, which no checker knows", listed)
	}
}

// tracked lists the text files of the repository that people wrote.
func tracked(t *testing.T) (out []string) {
	t.Helper()
	names, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(names)) {
		switch name = strings.TrimSpace(name); filepath.Ext(name) {
		case ".go", ".md", ".yaml", ".proto", ".txt", ".mutant", ".patch", ".sh":
			out = append(out, name)
		}
	}
	return out
}
