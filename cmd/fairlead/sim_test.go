// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/scenario"
)

// actor plays no worlds: the seeds in breaks break a rule, and from the seed hangs on runs last until somebody interrupts.
type actor struct {
	breaks map[uint64]bool
	hangs  uint64
	begins func() // each run; optional
	loaded bool
	kept   []uint64 // seeds of which a trace was asked for
}

func (a *actor) load(_ context.Context, file string) (simulator, error) {
	a.loaded = true
	return simulator{close: func() {}, play: func(ctx context.Context, s scenario.Scenario, keep bool) (sim.Result, error) {
		if a.begins != nil {
			a.begins()
		}
		if a.hangs > 0 && s.Seed >= a.hangs {
			<-ctx.Done()
			return sim.Result{}, ctx.Err()
		}
		if keep {
			a.kept = append(a.kept, s.Seed)
		}
		r := sim.Result{
			Seed: s.Seed, Scenario: s, Digest: "d16e57", Module: "m0d", Virtual: time.Minute, Counts: map[string]int{"S8": 7},
			Repeat: "fairlead sim replay --again " + file,
		}
		if a.breaks[s.Seed] {
			r.Violation = &check.Violation{Rule: "S8", At: 12 * time.Second, Subject: "x at s1", Text: "unforwarded"}
		}
		return r, nil
	}}, nil
}

// run runs a command line of `fairlead sim`.
func (a *actor) run(t *testing.T, ctx context.Context, args ...string) ran {
	t.Helper()
	isolate(t)
	var stdout, stderr bytes.Buffer
	c := &cli{in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: os.Getenv}
	code := execute(ctx, newRoot(c, newSim(c, a.load)), append([]string{"sim"}, args...), &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// last is the line that says what went wrong, after those of progress.
func (r ran) last() string {
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	return lines[len(lines)-1]
}

// mustEnd fails unless a command ended so, with the texts in its last line.
func (r ran) mustEnd(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d: %q", r.code, code, r.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.last(), text) {
			t.Errorf("%q is not in %q", text, r.last())
		}
	}
}

// files makes files in a folder of their own.
func files(t *testing.T, all map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const calmScenario = "seed: 3\nduration: 10s\nmembers: 1\nnodes: 1\nswitches: 1\nservices: 1\n"

// Nothing is played, and nothing built, for a command line that cannot be meant.
func TestSimRefusesWhatCannotBeMeant(t *testing.T) {
	dir := files(t, map[string]string{
		"calm.yaml":         calmScenario,
		"fault.yaml":        calmScenario + "faults: [{kind: meteor, at: 5s, for: 1s}]\n",
		"victim.yaml":       calmScenario + "faults: [{kind: kill, at: 5s, for: 1s, who: [m7]}]\n",
		"field.yaml":        calmScenario + "nods: 3\n",
		"type.yaml":         "seed: three\n",
		"broken.yaml":       "seed: [3\n",
		"empty.yaml":        "",
		"binary.yaml":       "\x00\x01\x02",
		"k/service.yaml":    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n",
		"none/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n",
		"broken/a.yaml":     "apiVersion: v1\nkind: Service\nmetadata: {name: a\n",
		"empty/readme.txt":  "nothing",
		"clash/a.yaml":      "apiVersion: v1\nkind: Node\nmetadata: {name: m1}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n",
		"unknown/a.yaml":    "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
		"twice/a.yaml":      "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
		"template/a.yaml":   "{{ if .Values.on }}\nkind: Service\n{{ end }}\n",
		"wrong-type/a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: web}]}\n",
		"refused/a.yaml":    "apiVersion: v1\nkind: Service\nmetadata: {name: A_b}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n",
		"same-address/a.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {addresses: [{type: InternalIP, address: 192.0.2.7}]}\n---\n" +
			"apiVersion: v1\nkind: Node\nmetadata: {name: b}\nstatus: {addresses: [{type: InternalIP, address: 192.0.2.7}]}\n---\n" +
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"seeds-backwards":        {[]string{"run", "--seeds", "9..1"}, []string{`"9..1"`, "write 1..9"}},
		"seeds-no-number":        {[]string{"run", "--seeds", "x"}, []string{`"x"`, "such as 1..50"}},
		"seeds-negative":         {[]string{"run", "--seeds", "-1..3"}, []string{`"-1..3"`, "from 0 up"}},
		"seeds-empty":            {[]string{"run", "--seeds", ""}, []string{`""`, "such as 1..50"}},
		"seeds-half":             {[]string{"run", "--seeds", "1.."}, []string{`"1.."`}},
		"seeds-above-64-bits":    {[]string{"run", "--seeds", "1..18446744073709551616"}, []string{"two numbers"}},
		"seeds-too-many":         {[]string{"run", "--seeds", "0..18446744073709551615"}, []string{"more than 1000000", "in parts"}},
		"part-beyond":            {[]string{"run", "--part", "5/5"}, []string{`"5/5"`, "from 0 to N-1"}},
		"part-of-none":           {[]string{"run", "--part", "0/0"}, []string{`"0/0"`}},
		"part-no-number":         {[]string{"run", "--part", "x"}, []string{`"x"`, "such as 3/20"}},
		"part-of-too-few":        {[]string{"run", "--seeds", "1..3", "--part", "3/9"}, []string{"only 3 seeds"}},
		"within-negative":        {[]string{"run", "--within", "-5s"}, []string{"--within -5s", "0 runs all"}},
		"within-no-time":         {[]string{"run", "--within", "soon"}, []string{"--within"}},
		"duration-short":         {[]string{"run", "--duration", "1s"}, []string{"--duration 1s", "10s"}},
		"duration-long":          {[]string{"run", "--duration", "2h"}, []string{"--duration 2h", "1h"}},
		"members-none":           {[]string{"run", "--members", "0"}, []string{"--members 0", "1 to 9"}},
		"nodes-many":             {[]string{"run", "--nodes", "51"}, []string{"--nodes 51", "1 to 50"}},
		"services-many":          {[]string{"replay", "--seed", "1", "--services", "201"}, []string{"--services 201", "0 to 200"}},
		"scenario-missing":       {[]string{"run", "--scenario", at("nowhere.yaml")}, []string{"nowhere.yaml", "no such file"}},
		"scenario-folder":        {[]string{"run", "--scenario", dir}, []string{"is a directory", "name a file"}},
		"scenario-unknown-fault": {[]string{"run", "--scenario", at("fault.yaml")}, []string{"fault.yaml", "faults[0]", "meteor"}},
		"scenario-no-victim":     {[]string{"run", "--scenario", at("victim.yaml")}, []string{"faults[0]", "m7"}},
		"scenario-unknown-field": {[]string{"run", "--scenario", at("field.yaml")}, []string{"nods", "there are name"}},
		"scenario-wrong-type":    {[]string{"run", "--scenario", at("type.yaml")}, []string{"seed", "of that type"}},
		"scenario-broken":        {[]string{"replay", "--scenario", at("broken.yaml")}, []string{"broken.yaml"}},
		"scenario-empty":         {[]string{"replay", "--scenario", at("empty.yaml")}, []string{"empty.yaml", "members"}},
		"scenario-binary":        {[]string{"replay", "--scenario", at("binary.yaml")}, []string{"binary.yaml"}},
		"scenario-and-seeds":     {[]string{"run", "--scenario", at("calm.yaml"), "--seeds", "1..3"}, []string{"--seeds does not go with --scenario"}},
		"scenario-and-members":   {[]string{"replay", "--scenario", at("calm.yaml"), "--members", "5"}, []string{"--members does not go with --scenario"}},
		"replay-nothing":         {[]string{"replay"}, []string{"--seed N and --scenario FILE"}},
		"replay-both":            {[]string{"replay", "--seed", "1", "--scenario", "x"}, []string{"--seed N and --scenario FILE"}},
		"replay-no-seed":         {[]string{"replay", "--seed", "-1"}, []string{"--seed"}},
		"replay-unknown-kind":    {[]string{"replay", "--seed", "1", "-v", "--kind", "rumour"}, []string{`"rumour"`, "message"}},
		"replay-filter-unseen":   {[]string{"replay", "--seed", "1", "--about", "m1"}, []string{"add -v"}},
		"replay-lines-as-json":   {[]string{"replay", "--seed", "1", "-v", "-o", "json"}, []string{"-o json"}},
		"html-folder":            {[]string{"run", "--html", dir}, []string{"it is a folder", "name a file"}},
		"html-nowhere":           {[]string{"replay", "--seed", "1", "--html", at("x/page.html")}, []string{"no folder", "make it"}},
		"html-below-file":        {[]string{"replay", "--seed", "1", "--html", at("calm.yaml/page.html")}, []string{"no folder"}},
		"save-file":              {[]string{"run", "--save", at("calm.yaml")}, []string{"it is a file", "name a folder"}},
		"list-argument":          {[]string{"list", "faults"}, []string{"want no arguments"}},
		"what-if-alone":          {[]string{"run", "--what-if", "leader-killed"}, []string{"--what-if", "--manifests DIR"}},
		"what-if-unknown":        {[]string{"run", "--manifests", at("k"), "--what-if", "meteor"}, []string{`"meteor"`, "leader-killed"}},
		"manifests-and-save":     {[]string{"run", "--manifests", at("k"), "--save", dir}, []string{"--save does not go with --manifests"}},
		"manifests-and-scenario": {[]string{"run", "--manifests", at("k"), "--scenario", at("calm.yaml")}, []string{"--scenario does not go with --manifests"}},
		"manifests-seeds":        {[]string{"run", "--manifests", at("k"), "--seeds", "9..1"}, []string{"9..1"}},
		"manifests-html-folder":  {[]string{"run", "--manifests", at("k"), "--html", dir}, []string{"it is a folder"}},
		"manifests-missing":      {[]string{"run", "--manifests", at("nowhere")}, []string{"nowhere", "name a folder"}},
		"manifests-file":         {[]string{"run", "--manifests", at("calm.yaml")}, []string{"not a folder"}},
		"manifests-empty":        {[]string{"run", "--manifests", at("empty")}, []string{"no manifests (*.yaml"}},
		"manifests-broken":       {[]string{"run", "--manifests", at("broken")}, []string{"a.yaml, document 1", "mend the YAML"}},
		"manifests-template":     {[]string{"run", "--manifests", at("template")}, []string{"a.yaml", "render it first"}},
		"manifests-no-service":   {[]string{"run", "--manifests", at("none")}, []string{"no Service of type LoadBalancer, or with externalIPs, found among 1"}},
		"manifests-unknown-kind": {[]string{"run", "--manifests", at("unknown")}, []string{"no Service of type LoadBalancer"}},
		"manifests-twice":        {[]string{"run", "--manifests", at("twice")}, []string{"Service default/a is in a.yaml, document 1 already"}},
		"manifests-clash":        {[]string{"run", "--manifests", at("clash")}, []string{"Node m1", "rename the Node"}},
		"manifests-wrong-type":   {[]string{"run", "--manifests", at("wrong-type")}, []string{"spec.ports.port", "a number"}},
		"manifests-refused":      {[]string{"run", "--manifests", at("refused")}, []string{"A_b", "mend the manifest"}},
		"manifests-same-address": {[]string{"run", "--manifests", at("same-address")}, []string{"192.0.2.7", "give each node its own"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &actor{}
			a.run(t, t.Context(), test.args...).mustFail(t, exitUsage, append(test.want, "--help`")...)
			if a.loaded {
				t.Error("the program was loaded for nothing")
			}
		})
	}
}

func TestSimRunTakesRangesAndParts(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []uint64
	}{
		{[]string{"--seeds", "0"}, []uint64{0}},
		{[]string{"--seeds", "7..9"}, []uint64{7, 8, 9}},
		{[]string{"--seeds", "1..10", "--part", "1/4"}, []uint64{2, 6, 10}},
		{[]string{"--seeds", "18446744073709551615"}, []uint64{1<<64 - 1}},
		{[]string{"--seeds", "18446744073709551613..18446744073709551615", "--part", "1/2"}, []uint64{1<<64 - 2}},
		{[]string{"--seeds", "0..18446744073709551615", "--part", "3/9223372036854775808"}, []uint64{3, 1<<63 + 3}},
		{[]string{"--seeds", "1..2", "--within", "0s"}, []uint64{1, 2}},
	} {
		got := (&actor{}).run(t, t.Context(), append([]string{"run", "--json"}, test.args...)...)
		var report sim.Report
		if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != exitDone {
			t.Fatalf("%v: %v: %+v", test.args, err, got)
		}
		var seeds []uint64
		for _, s := range report.Seeds {
			seeds = append(seeds, s.Seed)
		}
		if len(seeds) != len(test.want) || seeds[0] != test.want[0] || seeds[len(seeds)-1] != test.want[len(seeds)-1] {
			t.Errorf("%v: %v, want %v", test.args, seeds, test.want)
		}
	}
}

// A million seeds begin at once: scenarios are drawn as they are needed. All of them take gigabytes.
func TestSimRunOfManySeedsBeginsAtOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var before, begun runtime.MemStats
	a := &actor{hangs: 1, begins: sync.OnceFunc(func() {
		runtime.ReadMemStats(&begun)
		stop()
	})}
	runtime.ReadMemStats(&before)
	a.run(t, ctx, "run", "--seeds", "1..1000000").mustFail(t, exitFailed, "interrupted: 0 of 1000000")
	if drawn := (begun.TotalAlloc - before.TotalAlloc) >> 20; drawn > 100 {
		t.Errorf("%d MiB were allocated before the first run began", drawn)
	}
}

// What runs told is printed though somebody ends the command, and the exit status says that it is not all.
func TestSimRunReportsWhatEndedBeforeAnInterruption(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml"} {
		dir := t.TempDir()
		var got ran
		synctest.Test(t, func(t *testing.T) { // whose time goes on once three have ended, and the others hang
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, stop)
			got = (&actor{hangs: 4, breaks: map[uint64]bool{2: true}}).run(t, ctx, "run", "-o", format, "--save", dir, "--html", filepath.Join(dir, "p.html"))
		})
		got.mustEnd(t, exitFailed, "interrupted: 3 of 10 runs had ended", "1 of 3 runs broke a rule")
		if want := map[string]string{"table": "3 runs, 1 failed", "json": `"runs": 3`, "yaml": "runs: 3"}[format]; !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %q", format, got.stdout)
		}
		if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 || !strings.HasSuffix(left[0], "s8-seed-2.yaml") {
			t.Errorf("kept: %v", left)
		}
	}
}

func TestSimInterruptedBeforeAnythingEndedSaysSo(t *testing.T) {
	for _, args := range [][]string{{"run", "--json"}, {"replay", "--seed", "5"}} {
		ctx, stop := context.WithCancel(t.Context())
		(&actor{hangs: 1, begins: stop}).run(t, ctx, args...).mustFail(t, exitFailed, "interrupted: 0 of 1")
	}
}

// Building the program takes long, too.
func TestSimInterruptedBeforeAWorldBeganSaysSo(t *testing.T) {
	isolate(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{{"run", "--seeds", "1..2"}, {"replay", "--seed", "1"}, {"run", "--manifests", "../../examples/quickstart"}} {
		var stdout, stderr bytes.Buffer
		c := &cli{in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: os.Getenv}
		code := execute(ctx, newRoot(c, newSim(c, shipped)), append([]string{"sim"}, args...), &stderr)
		ran{code, stdout.String(), stderr.String()}.mustFail(t, exitFailed, "interrupted: 0 ")
	}
}

// A broken rule is exit 1, told with the command that repeats it, and the page is of the run that broke it.
func TestSimRunFailsWithTheCommandThatRepeatsIt(t *testing.T) {
	dir := t.TempDir()
	a := &actor{breaks: map[uint64]bool{3: true, 4: true}}
	got := a.run(t, t.Context(), "run", "--seeds", "1..5", "--html", filepath.Join(dir, "p.html"), "--save", filepath.Join(dir, "new", "failed"))
	got.mustEnd(t, exitFailed, "2 of 5 runs broke a rule", "seed 3", "`fairlead sim replay --again `")
	if len(a.kept) != 1 || a.kept[0] != 3 {
		t.Errorf("the page is of %v", a.kept)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "p.html")); err != nil || !bytes.Contains(page, []byte("<html")) {
		t.Errorf("%v: %.100q", err, page)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "new", "failed", "*")); len(kept) != 2 {
		t.Errorf("kept %v", kept)
	}
}

func TestSimReplayOfAFileIsRepeatedByItsFile(t *testing.T) {
	file := filepath.Join(files(t, map[string]string{"mine.yaml": calmScenario}), "mine.yaml")
	a := &actor{breaks: map[uint64]bool{3: true}}
	got := a.run(t, t.Context(), "replay", "--scenario", file, "-o", "json")
	got.mustEnd(t, exitFailed, "S8 broke at 12.000000", "x at s1: unforwarded")
	if !strings.Contains(got.stdout, "--again "+file) {
		t.Error(got.stdout)
	}
}
