// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// The scripts of testdata tell what is proposed, step by step. Every step ends when nothing is left to propose.
// Commands:
//
//	see         objects come, or come to look different: one a line, see cluster.object
//	delete      objects go, and that is certain: one "kind name" a line
//	lose        objects are absent, and nobody knows why
//	allow       what was lost may be removed
//	strip       objects go on a live watch although nobody was asked to let them
//	unlisted, listed KIND...  kinds that were not, or were, listed in full
//	away, back KIND...  kinds that cannot be read now, or can again
//	judge OWNER keep=UID,... failed   a driver answers the question about an owner's pods
//	work        drivers are called, and what follows from that is planned, until nothing is left to do
//	deaf, heard ACTION...  calls that are not made, or made again
//	restore     the record is one that was restored from a backup
//	graves N    the record keeps so many graves
//	show        what the record holds, what waits, and what is counted
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		c := newCluster(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c.t, c.record.t = t, t
			return c.step(d)
		})
	})
}

func (c *cluster) step(d *datadriven.TestData) string {
	switch d.Cmd {
	case "see":
		for line := range strings.Lines(d.Input) {
			if f := strings.Fields(line); len(f) > 0 {
				c.object(f)
			}
		}
	case "delete", "lose", "strip":
		for line := range strings.Lines(d.Input) {
			f := strings.Fields(line)
			kind := kindOf[f[0]]
			if d.Cmd == "strip" {
				c.deleted = append(c.deleted, c.deletion(kind, f[1]))
			}
			c.remove(kind, splitName(f[1]))
			c.lost[string(kind)+" "+f[1]] = d.Cmd == "lose"
		}
	case "allow":
		for line := range strings.Lines(d.Input) {
			f := strings.Fields(line)
			delete(c.lost, string(kindOf[f[0]])+" "+f[1])
		}
	case "unlisted", "listed":
		for _, a := range d.CmdArgs {
			c.unlisted[kindOf[a.Key]] = d.Cmd == "unlisted"
		}
	case "away", "back":
		for _, a := range d.CmdArgs {
			c.away[kindOf[a.Key]] = d.Cmd == "away"
		}
	case "deaf", "heard":
		for _, a := range d.CmdArgs {
			c.record.deaf[a.Key] = d.Cmd == "deaf"
		}
	case "judge":
		c.judge(d)
	case "restore":
		_, epoch, _ := c.record.state.Identity()
		c.record.must(&fsm.NewEpoch{Group: "test", Epoch: epoch + 1, Cause: "restored"})
	case "graves":
		limit, err := strconv.ParseUint(d.CmdArgs[0].Key, 10, 32)
		if err != nil {
			c.t.Fatalf("graves: %v", err)
		}
		c.record.must(&fsm.PutSettings{Settings: fsm.Settings{GraveLimit: uint32(limit)}})
	case "work":
		return c.run()
	case "show":
		return c.show()
	default:
		c.t.Fatalf("no command %q", d.Cmd)
	}
	lines, _ := c.record.settle(c.input())
	if len(lines) == 0 {
		return "nothing to do"
	}
	return strings.Join(lines, "\n")
}

// run lets drivers and plans take turns until both rest.
func (c *cluster) run() string {
	var out []string
	for range 20 {
		c.record.calls = nil
		worked := c.record.work()
		for _, call := range c.record.calls {
			out = append(out, "call "+call)
		}
		lines, _ := c.record.settle(c.input())
		out = append(out, lines...)
		if !worked && len(lines) == 0 {
			if len(out) == 0 {
				return "nothing to do"
			}
			return strings.Join(out, "\n")
		}
	}
	c.t.Fatalf("drivers and plans do not come to rest: %v", out)
	return ""
}

func (c *cluster) judge(d *datadriven.TestData) {
	owner := d.CmdArgs[0].Key
	_, out := c.record.settle(c.input())
	for _, q := range out.Questions {
		if placeOf(q.Owner).id.String() != owner {
			continue
		}
		j := Judgement{Pods: q.Pods, Failed: d.HasArg("failed")}
		if j.Failed {
			j.Why = "no idea"
		}
		for _, a := range d.CmdArgs {
			if a.Key == "keep" {
				j.Keep = a.Vals
			}
		}
		c.judged[q.Owner] = j
		return
	}
	c.t.Fatalf("nobody asked about %s", owner)
}

func (c *cluster) show() string {
	v := c.record.state.Read()
	var b strings.Builder
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		fmt.Fprintf(&b, "balancer %s: %s info=%s attributes=%s ensured=%t\n", short(string(l.ID)), l.State, words(l.Info), words(l.Attributes), l.Ensured)
	}
	for _, o := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		fmt.Fprintf(&b, "binding %s: %s %s address=%s registered=%t\n", o.ID, backend(o), o.State, o.Address, o.Registered)
	}
	in := c.input()
	in.Record = v
	out := Plan(in)
	for _, o := range slices.Sorted(keys(out.Counts)) {
		fmt.Fprintf(&b, "counts %s: %d registered of %d\n", short(o), out.Counts[o].Registered, out.Counts[o].Backends)
	}
	for _, q := range out.Questions {
		fmt.Fprintf(&b, "asks: %s about", q.Driver)
		for _, p := range q.Pods {
			fmt.Fprintf(&b, " %s", p.Name)
		}
		b.WriteString("\n")
	}
	for _, e := range out.Waiting {
		fmt.Fprintf(&b, "waits: %s %s: %s: %s\n", e.Kind, e.Name, e.Code, e.Text)
	}
	return b.String()
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

var kindOf = map[string]world.Kind{
	"driver": world.KindDriver, "lb": world.KindLoadBalancer, "group": world.KindBackendGroup, "bind": world.KindBind,
	"record": world.KindBackendRecord, "pod": world.KindPod, "service": world.KindService, "node": world.KindNode,
}
