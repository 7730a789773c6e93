// SPDX-License-Identifier: Apache-2.0

package mutants_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/sim/mutants"
)

const counter = `package p

func count(list []int) int {
	n := 0
	for range list {
		n++
	}
	return n
}
`

// tree is a source in which main and the record look enough like ours for what every overlay changes.
func tree(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"api/desired/service.go", "api/desired/steps.go", "cmd/internal/simguest/main.go", "fsm/command.go", "fsm/group.go", "fsm/snapshot.go"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, name, string(text))
	}
	write(t, folder, "p/count.go", counter)
	return folder
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	to := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mutant(t *testing.T, name, patches string) mutants.Mutant {
	t.Helper()
	m, err := mutants.Parse(name, "breaks: it\ncaught by: S1\n\n"+patches)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	startsAtOne = "--- p/count.go\n \tn := 0\n+\tif active.Is(\"a\") {\n+\t\tn = 1\n+\t}\n"
	countsTwice = "--- p/count.go \"math\"\n-\t\tn++\n+\t\tn++\n+\t\tif active.Is(\"b\") {\n+\t\t\tn = math.MaxInt\n+\t\t}\n"
)

// Bugs in one function stand beside each other, each under its own guard, and what they import is imported once.
func TestPlantedBugsOfOneFunctionCompose(t *testing.T) {
	both := []mutants.Mutant{mutant(t, "a", startsAtOne), mutant(t, "b", countsTwice)}
	sources, err := mutants.Sources(tree(t), both)
	if err != nil {
		t.Fatal(err)
	}
	want := `package p; import "fairlead.io/fairlead/sim/mutants/active"; import "math"

func count(list []int) int {
	n := 0
	if active.Is("a") {
		n = 1
	}
	for range list {
		n++
		if active.Is("b") {
			n = math.MaxInt
		}
	}
	return n
}
`
	if got := sources["p/count.go"]; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What cannot be applied is named, and where.
func TestOverlayRefusesWhatDoesNotFit(t *testing.T) {
	twice := mutant(t, "c", "--- p/count.go\n-\t\tn++\n+\t\tif !active.Is(\"c\") {\n+\t\t\tn++\n+\t\t}\n")
	for name, c := range map[string]struct {
		list []mutants.Mutant
		want string
	}{
		"changed": {[]mutants.Mutant{mutant(t, "a", strings.Replace(startsAtOne, "n := 0", "m := 0", 1))},
			`planted bug a no longer applies: place 1 in p/count.go, which begins with "m := 0", is there 0 times, not once`},
		"gone":    {[]mutants.Mutant{mutant(t, "a", strings.Replace(startsAtOne, "count.go", "gone.go", 1))}, "planted bug a no longer applies: open "},
		"overlap": {[]mutants.Mutant{mutant(t, "b", countsTwice), twice}, "planted bug b and planted bug c change the same lines of p/count.go, from line 6"},
		"ambiguous": {[]mutants.Mutant{mutant(t, "d", "--- fsm/group.go\n-}\n+} // active.Is(\"d\")\n")},
			"planted bug d no longer applies: place 1 in fsm/group.go"},
		"syntax": {[]mutants.Mutant{mutant(t, "a", "--- p/count.go\n \tn := 0\n+\tif active.Is(\"a\") {\n")}, "p/count.go with its changes: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mutants.Sources(tree(t), c.list)
			if text := textOf(err); !strings.Contains(text, c.want) || (c.want == "") != (err == nil) {
				t.Errorf("error %q, want %q", text, c.want)
			}
		})
	}
}

// A text that could break the program while its bug is off, or says too little, is refused.
func TestParseRefusesUnguardedAndUnexplainedBugs(t *testing.T) {
	const head = "breaks: it\ncaught by: S1\n"
	for name, c := range map[string]struct{ text, want string }{
		"unguarded":  {head + "--- p/count.go\n \tn := 0\n+\tn = 1\n", `nothing that it adds is guarded by active.Is("a")`},
		"other":      {head + startsAtOne + "@@\n \tn++\n+\t_ = active.Is(\"b\")\n", "it adds a guard of something else in p/count.go"},
		"no breaks":  {"caught by: S1\n" + startsAtOne, "it does not say what it breaks"},
		"no rules":   {"breaks: it\n" + startsAtOne, "it does not say which rules catch it"},
		"unknown":    {head + "speed: high\n" + startsAtOne, `line "speed: high"`},
		"no context": {head + "--- p/count.go\n+var x = active.Is(\"a\")\n", "place 1 changes nothing, or has no line of the source"},
		"no change":  {head + "--- p/count.go\n \tn := 0\n", "place 1 changes nothing"},
		"sign":       {head + "--- p/count.go\nn := 0\n", `"n := 0" begins with none of space, + and -`},
		"import":     {head + "--- p/count.go math\n", "import math"},
		"no file":    {head + "--- \n", "a patch names no file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := mutants.Parse("a", c.text); !strings.Contains(textOf(err), c.want) {
				t.Errorf("error %q, want %q", textOf(err), c.want)
			}
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
