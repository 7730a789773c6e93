// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"runtime"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
)

func TestUsageAddsUpWhatProcessesTake(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w, u := engine.New(1), new(Usage)
	a, b := start(w, Spec{Name: "a", Usage: u}, "sleep", "10", "100"), start(w, Spec{Name: "b", Usage: u}, "sleep", "10", "100")
	b.process.Deliver(make([]byte, 9))
	runFor(t, w, 35*time.Millisecond)
	resumes, both := a.process.Resumes()+b.process.Resumes(), a.process.MemoryBytes()+b.process.MemoryBytes()
	if u.Resumes != resumes || u.Frames != 1 || u.MemoryBytes != both || u.Computing <= 0 {
		t.Errorf("%+v, want %d resumes, 1 frame, %d bytes and some time", *u, resumes, both)
	}
	a.process.Kill()
	b.process.Kill()
	c := start(w, Spec{Name: "c", Usage: u}, "sleep", "10", "100")
	runFor(t, w, 35*time.Millisecond)
	if u.Resumes != resumes+c.process.Resumes() || u.MemoryBytes != both || c.process.MemoryBytes() == 0 {
		t.Errorf("%+v after a third one, of %d bytes, which the others made room for", *u, c.process.MemoryBytes())
	}
}
