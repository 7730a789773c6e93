// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
)

func TestUsageAddsUpWhatProcessesDo(t *testing.T) {
	w, u := engine.New(1), new(Usage)
	a, b := start(w, Spec{Name: "a", Usage: u}, "sleep", "10", "100"), start(w, Spec{Name: "b", Usage: u}, "sleep", "10", "100")
	b.process.Deliver(frameOf(9))
	runFor(t, w, 35*time.Millisecond)
	if resumes := a.process.Resumes() + b.process.Resumes(); u.Resumes != resumes || resumes == 0 || u.Frames != 1 {
		t.Errorf("%+v, want %d resumes and 1 frame", *u, resumes)
	}
	a.process.Kill()
	b.process.Kill()
}
