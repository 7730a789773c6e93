// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/vm"
)

// sleeper is a program that does nothing but sleep.
func sleeper(t *testing.T) *vm.Module {
	code, err := os.ReadFile(filepath.Join("..", "fault", "testdata", "sleeper.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := vm.Load(context.Background(), code, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// account is what a run was like.
type account struct {
	digest      string
	open        int // faults that have not ended
	began, last int
	ended       time.Duration // the last one
	calm        []time.Duration
	services    int
	excused     []time.Duration // ends of what may end after it is calm: see untold
}

// untold is the text of what excuses an agent that began with an empty disk. Nobody tells a program that does nothing but sleep
// what to do, so that this lasts until some time after it is calm.
const untold = "the agent knows nothing of what was leaving"

func play(t testing.TB, s scenario.Scenario, program *vm.Module) (a account) {
	w := engine.New(s.Seed)
	sum := sha256.New()
	excuses := map[int]bool{}
	w.Hear(func(e event.Stamped) {
		fmt.Fprintf(sum, "%d %d %T %+v\n", e.At, e.Number, e.Event, e.Event)
		switch x := e.Event.(type) {
		case event.FaultBegan:
			if x.Text == untold {
				excuses[x.ID] = true
				break
			}
			a.open++
			a.began++
		case event.FaultEnded:
			if excuses[x.ID] {
				delete(excuses, x.ID)
				a.excused = append(a.excused, e.At)
				break
			}
			a.open--
			a.ended = e.At
		case event.Calm:
			a.calm = append(a.calm, e.At)
			a.last = a.open
		}
	})
	o := s.Stage()
	record := check.NewRecord()
	o.Program, o.Record = program, func() *fsm.View { return record.View() }
	st := stage.New(w, o)
	defer st.Strike()
	st.Raise()
	scenario.Play(st, s)
	if err := w.Run(s.End()); err != nil {
		t.Fatal(err)
	}
	a.open += len(excuses)
	a.digest, a.services = fmt.Sprintf("%x", sum.Sum(nil)), len(st.Kube.List("Service"))
	return a
}

// Every fault of a run is published to begin and to end, then it is calm, once, when the scenario says so (calls of
// processes take their time), and all of it happens the same way again.
func TestPlayedScenariosComeToRest(t *testing.T) {
	program := sleeper(t)
	excused := 0
	for seed := range uint64(12) { // a run of a minute takes a tenth of a second
		s := scenario.Draw(seed, scenario.Options{Nodes: 3, Balancers: 1, Clients: 1, Outside: 1, Rough: true})
		a := play(t, s, program)
		if a.open != 0 || a.last != 0 || a.began < len(s.Faults) || len(a.calm) != 1 || a.calm[0] < a.ended || a.calm[0]-s.Calm() > time.Millisecond {
			t.Errorf("%s: %+v, calm expected at %s", s, a, s.Calm())
		}
		for _, at := range a.excused {
			excused++
			if at > s.Calm()+5*time.Second+time.Millisecond {
				t.Errorf("%s: an agent is excused until %s, calm expected at %s", s, at, s.Calm())
			}
		}
		if b := play(t, s, program); b.digest != a.digest {
			t.Errorf("%s: another time something else happens", s)
		}
	}
	if excused == 0 {
		t.Error("no agent lost its disk")
	}
}

func TestPlayBringsServicesIn(t *testing.T) {
	program := sleeper(t)
	s := scenario.Draw(1, scenario.Options{Services: 7, NoWork: true, NoFaults: true})
	if a := play(t, s, program); a.services != 7+1 { // and that of the API server
		t.Errorf("%d Services", a.services)
	}
}
