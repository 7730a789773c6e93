// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/balancer/message"
	"fairlead.io/fairlead/sim/event"
)

// Scripts tell what calls do and how they are answered, also when something is wrong with the driver.
//
//	ACTION [BINDING [ADDRESS]] [attempt=N]   a call about lb1; what is heard of it comes later
//	begin FAULT [how=] [delay=]              end FAULT
//	add ADDRESS / remove ADDRESS             by hand
//	wait DURATION                            shows what happened by then, and what m1 heard
//	show                                     what is on lb1
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{bench: newBench(1), ends: map[string]func(){}}
		s.w.Hear(func(e event.Stamped) {
			if text := line(e); text != "" {
				s.tell(text)
			}
		})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	*bench
	ends map[string]func()
	told []string // since it was last asked for
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "begin":
		var scope balancer.Scope
		var delay string
		d.MaybeScanArgs(t, "how", &scope.How)
		if d.MaybeScanArgs(t, "delay", &delay) {
			scope.Delay, _ = time.ParseDuration(delay)
		}
		s.ends[d.CmdArgs[0].Key] = s.Begin(balancer.Fault(d.CmdArgs[0].Key), scope)
	case "end":
		s.ends[d.CmdArgs[0].Key]()
	case "add":
		return fmt.Sprintln(s.AddByHand("lb1", d.CmdArgs[0].Key))
	case "remove":
		return fmt.Sprintln(s.RemoveByHand("lb1", d.CmdArgs[0].Key))
	case "wait":
		duration, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.wait(duration)
		out := strings.Join(append(s.told, ""), "\n")
		s.told = nil
		return out
	case "show":
		var out strings.Builder
		for _, e := range s.Entries("lb1") {
			fmt.Fprintf(&out, "%s %s ours=%t\n", e.Address, e.Binding, e.Ours)
		}
		fmt.Fprintf(&out, "attempts that ran back: %d\n", s.Back())
		return out.String()
	default:
		s.call(t, d)
	}
	return ""
}

func (s *script) call(t *testing.T, d *datadriven.TestData) {
	var words []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			words = append(words, a.Key)
		}
	}
	m := message.Request{Balancer: "lb1", Info: balancer.Info("lb1")}
	if len(words) > 0 {
		m.Backend = &message.Backend{Binding: words[0], Parameters: []fsm.KV{{Key: balancer.BackendKey, Value: "10.0.0.9"}}}
	}
	if len(words) > 1 {
		m.Backend.Address = words[1]
	}
	var attempt int
	if d.MaybeScanArgs(t, "attempt", &attempt) {
		m.Attempt = fsm.Revision{Epoch: 1, Index: fsm.Index(attempt)}
	}
	for a := fsm.ActionAddress; a <= fsm.ActionCreateBalancer; a++ {
		if a.String() == d.Cmd {
			what := strings.TrimSpace(d.Cmd + " " + strings.Join(words, " "))
			s.ask(a, m, func(status int, answer message.Answer, err error) {
				text := fmt.Sprintf("%d %s %s %s", status, answer.Result, answer.Message, answer.Address)
				if err != nil {
					text = err.Error()
				}
				s.tell("m1 hears of " + what + ": " + text)
			})
			return
		}
	}
	t.Fatalf("%s: no such command", d.Cmd)
}

// tell notes what happened, and when.
func (s *script) tell(text string) {
	s.told = append(s.told, fmt.Sprintf("%5.1fs %s", s.w.Now().Seconds(), strings.Join(strings.Fields(text), " ")))
}
