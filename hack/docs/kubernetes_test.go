// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// statements is how many numbered rules of Kubernetes docs/kubernetes-lb.md answers.
const statements = 52

var (
	statementRow = regexp.MustCompile(`^\| K(\d+) \|[^|]+\| ([a-z-]+) \|[^|]*\|(.*)\|$`)
	numbers      = regexp.MustCompile(`K(\d+)(?: ?(?:-|to) ?K(\d+))?`)
)

// TestEveryStatementOfKubernetesIsAnswered holds docs/kubernetes-lb.md to its own promise: each number has its line, in order, and
// whatever is kept has a test that names it, in its name, in the comment on it or in its script.
func TestEveryStatementOfKubernetesIsAnswered(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes-lb.md"))
	if err != nil {
		t.Fatal(err)
	}
	next := 1
	for line := range strings.Lines(string(page)) {
		m := statementRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		if m[1] != strconv.Itoa(next) {
			t.Fatalf("K%s stands where K%d should", m[1], next)
		}
		named := testsOf(t, m[3])
		switch m[2] {
		case "done", "part":
			if !namesStatement(named, next) {
				t.Errorf("K%d is %s, and no test of its line names it", next, m[2])
			}
		case "kube-proxy", "client", "open":
			if len(named) > 0 {
				t.Errorf("K%d is %s, and has tests", next, m[2])
			}
		default:
			t.Errorf("K%d is %q, which means nothing", next, m[2])
		}
		next++
	}
	if next != statements+1 {
		t.Errorf("%d statements are answered, not %d", next-1, statements)
	}
}

// testsOf gives what each test of a cell says of itself: its comment and name, or its script.
func testsOf(t *testing.T, cell string) (out []string) {
	t.Helper()
	folder := ""
	for _, m := range folderOrTest.FindAllStringSubmatch(cell, -1) {
		if m[1] != "" {
			folder = filepath.Join(root, m[1])
			continue
		}
		said := testsIn(t, folder).tests[m[2]]
		if row := strings.TrimPrefix(m[3], "/"); row != "" {
			scripts, err := filepath.Glob(filepath.Join(folder, "testdata", "*", row+m[4]+"*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, script := range scripts {
				said += string(read(t, script))
			}
		}
		out = append(out, said)
	}
	return out
}

// namesStatement tells whether a number is named, or is in a range that is.
func namesStatement(said []string, number int) bool {
	for _, m := range numbers.FindAllStringSubmatch(strings.Join(said, "\n"), -1) {
		first, _ := strconv.Atoi(m[1]) // digits
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		if first <= number && number <= last {
			return true
		}
	}
	return false
}
