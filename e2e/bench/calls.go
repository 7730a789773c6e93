// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"fairlead.io/fairlead/fsm"
)

// stage is one of the steps that some bindings take together, a log entry each: its commands, given the entry's index,
// and the stage that follows it, if any.
type stage func(index fsm.Index) (commands []fsm.Command, then stage)

// change asks for other parameters and ensures those.
func change(bindings []*fsm.PutBinding) stage {
	return func(fsm.Index) ([]fsm.Command, stage) {
		var out []fsm.Command
		for _, b := range bindings {
			b.Parameters[1].Value = "20"
			out = append(out, b)
		}
		return out, begin(bindings)
	}
}

// begin begins the calls of the driver, and later finishes them.
func begin(bindings []*fsm.PutBinding) stage {
	return func(index fsm.Index) ([]fsm.Command, stage) {
		var out []fsm.Command
		for _, b := range bindings {
			out = append(out, &fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: b.ID, Deadline: 10 * time.Second})
		}
		return out, finish(bindings, fsm.Revision{Epoch: 1, Index: index})
	}
}

func finish(bindings []*fsm.PutBinding, attempt fsm.Revision) stage {
	return func(fsm.Index) ([]fsm.Command, stage) {
		var out []fsm.Command
		for _, b := range bindings {
			out = append(out, &fsm.FinishOperation{
				Subject: subjectOf(b), Attempt: attempt, Result: fsm.ResultSucceeded,
			})
		}
		return out, nil
	}
}

// batches encodes the entries with which groups of width bindings go through their stages, for a record of size
// bindings. Between two stages of a group lies more than a batch of others, as a driver's
// call lies between them in earnest.
func batches(t *bench, s *fsm.State, size, groups, width int, start func([]*fsm.PutBinding) stage) [][]fsm.LogEntry {
	var out [][]fsm.LogEntry
	var waiting []stage
	next, index := 0, s.Applied()
	for next < groups || len(waiting) > 0 {
		var now stage
		if next == groups || len(waiting) > perBatch {
			now, waiting = waiting[0], waiting[1:]
		} else {
			now = start(scattered(size, next, width))
			next++
		}
		index++
		commands, then := now(index)
		if then != nil {
			waiting = append(waiting, then)
		}
		if len(out) == 0 || len(out[len(out)-1]) == perBatch {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], entry(t, s, index, commands...))
	}
	return out
}

// scattered gives the bindings of a group, from all over the record. No binding is in two of the first size/width
// groups.
func scattered(size, group, width int) []*fsm.PutBinding {
	var out []*fsm.PutBinding
	for i := range width {
		out = append(out, bindingNumber((group*width+i)*7919%size)) // 7919 is prime and does not divide size
	}
	return out
}
