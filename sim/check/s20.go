// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"fairlead.io/fairlead/sim/event"
)

// s20 listens for members that set something aside which they planned, since no log entry can hold it: whatever texts objects have, what they
// cannot be taken in with is found where they come in, and nothing is planned of it. That the others go on is asked for in L1 and L3.
type s20 struct {
	idle
	*judge
}

// setAside is how the line begins in which a leader says so.
const setAside = "set aside: "

func newS20(j *judge) rule { return &s20{judge: j} }

func (r *s20) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Object:
		if s := r.kube.services[x.Namespace+"/"+x.Name]; x.Kind == "Service" && s != nil && s.Foul {
			r.checked()
		}
	case event.Log:
		if strings.HasPrefix(x.Text, setAside) {
			r.broken(x.Process, "it planned what cannot be recorded: "+x.Fields, e.Number)
		}
	}
}
