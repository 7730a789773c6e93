// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// completed gives what the shell is offered, and leaves out what is only for debugging.
func (w *world) completed(servers []string, args ...string) []string {
	w.t.Helper()
	files := []string{"__complete", "--ca", w.files.CA, "--cert", w.files.Cert, "--key", w.files.Key}
	for _, server := range servers {
		files = append(files, "--server", server)
	}
	got := fairlead(w.t, append(files, args...)...)
	if got.code != exitDone {
		w.t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	return lines[:len(lines)-1] // the last is the directive
}

func TestCompletionOffersWhatWillDo(t *testing.T) {
	w := newWorld(t)
	alive := []string{w.serve(&fakeRaft{}, shop())}
	for name, test := range map[string]struct {
		servers []string
		args    []string
		want    string
	}{
		"verbs":          {nil, []string{"raft", "re"}, "recover remove restore"},
		"kinds":          {nil, []string{"get", "po"}, "pools policies"},
		"describe-kinds": {nil, []string{"describe", "serv"}, "services"},
		"names":          {alive, []string{"get", "svc", "shop/"}, "shop/api shop/web"},
		"no-third":       {alive, []string{"get", "svc", "shop/api", ""}, ""},
		"servers":        {alive, []string{"raft", "remove", ""}, "m1 m2 m3"},
		"formats":        {nil, []string{"get", "-o", ""}, "table json yaml"},
		"roles":          {nil, []string{"pki", "issue", ""}, "member agent host operator viewer"},
		"drain-member":   {alive, []string{"drain", "member", ""}, "m1 m2 m3"},
		"log-levels":     {nil, []string{"dev", "--log", ""}, "debug info warn error"},
		"what-ifs":       {nil, []string{"sim", "run", "--manifests", "../../examples/quickstart", "--what-if", "leader"}, "leader-killed"},
		"nobody-there":   {[]string{deadAddress(t)}, []string{"get", "svc", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, line := range w.completed(test.servers, test.args...) {
				word, _, _ := strings.Cut(line, "\t")
				if strings.HasPrefix(word, test.args[len(test.args)-1]) { // as every shell filters
					got = append(got, word)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("offered %v, want %s", got, test.want)
			}
		})
	}
}

func TestCompletionScriptsForEveryShell(t *testing.T) {
	isolate(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := fairlead(t, "completion", shell).mustPrint(t); !strings.Contains(got, "__complete") {
			t.Errorf("%s: %d bytes", shell, len(got))
		}
	}
}
