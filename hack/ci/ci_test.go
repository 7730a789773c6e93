// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func shell(name, script string) stage {
	return stage{name, "a test of stages", "make " + name, []string{"sh", "-c", script}}
}

func TestStagesStopAtTheFirstThatFails(t *testing.T) {
	var out bytes.Buffer
	code := runStages(t.Context(), []stage{
		shell("first", "echo one"), shell("second", "for i in $(seq 30); do echo line $i; done; echo 'x_test.go:7: no leader'; exit 3"), shell("third", "echo three"),
	}, &out)
	text := out.String()
	if code != 1 || strings.Contains(text, "three\n") {
		t.Errorf("exit %d:\n%s", code, text)
	}
	for _, want := range []string{"second", "failed", "third              not run", "stage second failed: sh -c ended with 3", "  x_test.go:7: no leader\n", "again: make second\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestStagesThatPassEndWithATable(t *testing.T) {
	var out bytes.Buffer
	if code := runStages(t.Context(), []stage{shell("first", "echo one"), shell("second", "true")}, &out); code != 0 {
		t.Errorf("exit %d", code)
	}
	if text := out.String(); strings.Count(text, "passed") != 2 || !strings.Contains(text, "\nall ") {
		t.Errorf("table:\n%s", text)
	}
}

func TestTenLinesThatMatter(t *testing.T) {
	var many strings.Builder
	for i := range 50 {
		fmt.Fprintf(&many, "failed: pkg Test%d: why\n", i)
	}
	for _, c := range []struct {
		name, output, first string
		n                   int
	}{
		{"verdicts", "an error on the way that was expected\n" + many.String() + "make: *** [test] Error 1\n", "failed: pkg Test0: why", 10},
		{"trouble", "fine\nconfiguration error: no file\nmake: *** [lint] Error 1\n", "configuration error: no file", 1},
		{"last words", strings.Repeat("nothing to see\n", 20) + "the end", "nothing to see", 10},
		{"linter", "ok\ncluster/join.go:12:3: Error return value is not checked (errcheck)\n", "cluster/join.go:12:3: Error return value is not checked (errcheck)", 1},
	} {
		var kept tail
		for i := range c.output { // in pieces
			_, _ = kept.Write([]byte(c.output[i : i+1])) // it takes all
		}
		if got := kept.matter(); len(got) != c.n || got[0] != c.first {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestOnlyStagesThatAreThereAreChosen(t *testing.T) {
	if some, err := choose(stages("race,lint", "", "left"), "race,lint"); err != nil || len(some) != 2 || some[0].name != "lint" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := choose(stages("rice", "", "left"), "rice"); err == nil {
		t.Error("no such stage")
	}
}
