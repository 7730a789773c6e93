// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	folderOrTest = regexp.MustCompile("`([a-z0-9_./-]+)`|\\b(Test[A-Z][A-Za-z0-9_]*)(/[a-z0-9_-]+(?:[.]txt)?)?(…?)")
	shortName    = regexp.MustCompile("`(\\w+)` is\\s`([a-z0-9/]+)`")
)

// TestEveryTestThatIsNamedIsThere holds tables of what is tested where to the tests: "`folder` TestA, TestB/row, TestC…". A row is a
// script in a folder of testdata or a string in the tests; an ellipsis stands for the rest of a name.
func TestEveryTestThatIsNamedIsThere(t *testing.T) {
	for name, least := range map[string]int{"acceptance.md": 60, "lbcf-coverage.md": 150, "balancing-coverage.md": 90, "kubernetes-lb.md": 50} {
		page, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		folders := map[string]string{}
		for _, m := range shortName.FindAllStringSubmatch(string(page), -1) {
			folders[m[1]] = m[2]
		}
		found := 0
		for line := range strings.Lines(string(page)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			folder := ""
			for _, m := range folderOrTest.FindAllStringSubmatch(line, -1) {
				if m[1] != "" {
					folder = m[1]
					if long, ok := folders[folder]; ok {
						folder = long
					}
					continue
				}
				found++
				if why := missing(t, filepath.Join(root, folder), m[2], strings.TrimPrefix(m[3], "/"), m[4] != ""); why != "" {
					t.Errorf("docs/%s names %s in %s: %s", name, m[0], folder, why)
				}
			}
		}
		if found < least {
			t.Errorf("docs/%s names %d tests, fewer than %d: are its tables read?", name, found, least)
		}
	}
}

// numberedName is what tests were called by that a number named: a row, a statement or a section. The number is for the comment.
var numberedName = regexp.MustCompile(`^func (?:Test|Benchmark|Fuzz)(?:Property)?\w*?((?:Row|Section|Balancing|LBCF)\d|(?:Test|Property|Benchmark|Fuzz|And)K\d)\w*\(`)

// Tests are named by the rule that they hold.
func TestNoTestIsNamedByANumber(t *testing.T) {
	tests := 0
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for line := range strings.Lines(string(read(t, filepath.Join(root, file)))) {
			if strings.HasPrefix(line, "func Test") {
				tests++
			}
			if numberedName.MatchString(line) {
				t.Errorf("%s: say the rule in the name, and its number in the comment (// Rule: balancing §24.): %s", file, strings.TrimSpace(line))
			}
		}
	}
	if tests < 2000 {
		t.Errorf("only %d tests were found: are they read?", tests)
	}
}

// missing says what is not there of a test of a folder.
func missing(t *testing.T, folder, name, row string, short bool) string {
	t.Helper()
	in := testsIn(t, folder)
	_, test := in.tests[name]
	for other := range in.tests {
		test = test || short && strings.HasPrefix(other, name)
	}
	text := row == "" || strings.Contains(in.text, `"`+row+`"`)
	if scripts, _ := filepath.Glob(filepath.Join(folder, "testdata", "*", row)); row != "" && len(scripts) > 0 {
		text = true
	}
	switch {
	case !test:
		return "there is no such test"
	case !text:
		return "it has no such row"
	}
	return ""
}
