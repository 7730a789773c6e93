// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/workload"
)

func TestWhatWasWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	testkit.Check(t, func(t *rapid.T) {
		o := options(t)
		o.Outside = rapid.IntRange(0, 2).Draw(t, "outside")
		o.Balancers, o.Clients = rapid.IntRange(0, 2).Draw(t, "balancers"), rapid.IntRange(0, 2).Draw(t, "clients")
		o.ShortLogs = rapid.Bool().Draw(t, "short logs")
		s := scenario.Generate(o).Draw(t, "scenario")
		s.Name, s.About = rapid.String().Draw(t, "name"), rapid.String().Draw(t, "about")
		if err := s.Write(path); err != nil {
			t.Fatal(err)
		}
		got, err := scenario.Read(path)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Text())
		}
		if s.Name, s.About = strings.ToValidUTF8(s.Name, "\uFFFD"), strings.ToValidUTF8(s.About, "\uFFFD"); !reflect.DeepEqual(got, s) {
			t.Fatalf("wrote\n%s\nread\n%s", s.Text(), got.Text())
		}
	})
}

func TestFileReadsAsPeopleWriteIt(t *testing.T) {
	got, err := scenario.Parse([]byte(`
# m1 is killed while nodes are cut off.
name: example
seed: 7
duration: 60s
members: 3
nodes: 5
switches: 2
services: 4
drift: 200
faults:
- kind: fuse
  at: 10s
  for: 2.5s
  who: [m1, n2]
  with: {calls: 17}
work:
- {at: 12s, do: scale, with: {name: web1, replicas: 0}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := scenario.Scenario{
		Name: "example", Seed: 7, Duration: time.Minute, Members: 3, Nodes: 5, Switches: 2, Services: 4, Drift: 200,
		Faults: []fault.Fault{{
			Kind: "fuse", At: 10 * time.Second, For: 2500 * time.Millisecond, On: []string{"m1", "n2"}, With: map[string]string{"calls": "17"},
		}},
		Work: []workload.Step{{At: 12 * time.Second, Do: "scale", With: map[string]string{"name": "web1", "replicas": "0"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestWrongFilesAreToldInOneLine(t *testing.T) {
	const head = "seed: 1\nduration: 60s\nmembers: 3\nnodes: 2\nswitches: 1\nservices: 1\n"
	for _, c := range []struct{ text, want string }{
		{head + "mambers: 3", `unknown field "mambers"; there are name, about,`},
		{head + "faults: [{kind: kil, at: 1s, for: 1s, who: [m1]}]", `faults[0].kind: "kil" is unknown; choose one of kill, fuse,`},
		{head + "faults: [{kind: kill, at: -1s, for: 1s, who: [m1]}]", `faults[0].at: -1s is before the beginning; write 0s or later`},
		{head + "faults: [{kind: kill, at: 1s, for: -2s, who: [m1]}]", `faults[0].for: -2s is negative`},
		{head + "faults: [{kind: kill, at: 1s, for: 1s, who: [m4]}]", `faults[0].who[0]: "m4" does not exist; choose of m1, m2, m3, n1, n2`},
		{head + "faults: [{kind: kill, at: 1s, for: 1s, who: [s1]}]", `faults[0].who[0]: kill cannot befall s1; choose of m1, m2, m3, n1, n2`},
		{head + "faults: [{kind: kill, at: 1s, for: 1s, who: [m1, m1]}]", `faults[0].who[1]: m1 is there already; name each once`},
		{head + "faults: [{kind: kill, at: 1s, for: 1s}]", `faults[0].who: kill has to befall somebody`},
		{head + "faults: [{kind: kill, at: 1s, for: 1s, on: [m1]}]", `unknown field`},
		{head + "faults: [{kind: kill, at: soon, for: 1s, who: [m1]}]", `"soon" is not a time; write one such as "12.5s"`},
		{head + "faults: [{kind: kill, at: 5, for: 1s, who: [m1]}]", `5 is not a time; write one such as "12.5s"`},
		{head + "faults: [{kind: kill, at: 1s, for: 1s, who: [m1], with: {how: hard}}]", `faults[0].with.how: unknown; kill has no parameters`},
		{head + "faults: [{kind: fuse, at: 1s, for: 1s, who: [m1], with: {calls: many}}]", `faults[0].with.calls: "many": not a number from 1 to 1000000`},
		{head + "faults: [{kind: isolate, at: 1s, for: 1s, who: [m1]}]", `faults[0].with.from: missing; isolate needs it`},
		{head + "faults: [{kind: isolate, at: 1s, for: 1s, who: [m1], with: {from: n9}}]", `faults[0].with.from: "n9": "n9" does not exist`},
		{head + "work: [{at: 1s, do: dance}]", `work[0].do: "dance" is unknown; choose one of create,`},
		{head + "work: [{at: 1s, do: scale}]", `work[0].with.name: missing; scale needs it`},
		{head + "work: [{at: 1s, do: drain, with: {node: n3}}]", `work[0].with.node: "n3": "n3" does not exist; choose of n1, n2`},
		{head + "work: [{at: 1s, do: backends}]", `work[0].do: there is nothing in this world to backends`},
		{head + "work: [{at: -1s, do: release}]", `work[0].at: -1s is before the beginning`},
		{strings.Replace(head, "60s", "0s", 1), `duration: 0s is not possible; write more than 0s`},
		{strings.Replace(head, "members: 3", "members: 30", 1), `members: 30 is not possible; write a number from 1 to 9`},
		{head + "services: 4", `"services" already`},
		{"seed: -3\n", `cannot unmarshal number -3 into Go struct field`},
		{"nonsense", `write a value of that type`},
		{"a: b: c", `mapping values are not allowed`},
	} {
		path := filepath.Join(t.TempDir(), "wrong.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := scenario.Read(path)
		if err == nil {
			t.Errorf("took\n%s", c.text)
			continue
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "scenario "+path+": ") || !strings.Contains(text, c.want) {
			t.Errorf("told %q of\n%s\nwant %q", text, c.text, c.want)
		}
	}
	if _, err := scenario.Read("nowhere.yaml"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}
