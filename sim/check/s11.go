// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"slices"
	"strings"

	"fairlead.io/fairlead/sim/event"
)

// s11 takes the models' word on what bears our mark, and judges writes to Kubernetes itself: of what the group's
// processes write there, only the status of Services and Events are theirs, and of LBCF's objects what s11Wishes says.
type s11 struct {
	idle
	*judge
	wished *s11Wishes
	nodes  map[string]string // Nodes without what members write to them, by name
}

func newS11(j *judge) rule {
	return &s11{judge: j, wished: newS11Wishes(j), nodes: map[string]string{}}
}

func (r *s11) hear(e event.Stamped) {
	r.wished.hear(e.Event)
	switch x := e.Event.(type) {
	case event.Foreign:
		r.checked()
		r.broken(x.Where, x.By+" changed what is not ours: "+x.What, e.Number)
	case event.Drive:
		r.wished.called(e.Number, x)
		r.wished.anew(e.Number, x)
	case event.Entry:
		r.checked() // the model behind it looks at the mark of everything
		r.wished.entered(x)
	case event.Object:
		if slices.Contains(wishKinds, x.Kind) {
			r.wished.wrote(e.Number, x)
			return
		}
		noted := r.noted(x)
		if !r.ours(x.By) {
			return
		}
		r.checked()
		status := x.Kind == "Service" && x.Verb == "status"
		told := x.Kind == "Event" && x.Verb != "delete"
		policy := (x.Kind == "BalancingPolicy" || x.Kind == "LocalRedirectPolicy") && x.Verb == "status"
		if !status && !told && !noted && !policy {
			r.broken(x.Kind+" "+x.Namespace+"/"+x.Name, "not ours to write, by "+x.By+": "+x.Verb, e.Number)
		}
	case event.Steered, event.Forwarding:
		r.checked() // the models behind them look at the mark of everything
	}
}

func (r *s11) step(s *step) { r.wished.adds(s) }

// noted tells whether a write is one of a Node that changes annotations of client-side balancing alone, which members write where policies
// are carried out.
func (r *s11) noted(x event.Object) bool {
	if x.Kind != "Node" || !r.topology.Sockets.Policies {
		return false
	}
	var o map[string]any
	if json.Unmarshal(x.JSON, &o) != nil {
		return false
	}
	meta, _ := o["metadata"].(map[string]any)
	for _, own := range []string{"managedFields", "resourceVersion"} {
		delete(meta, own)
	}
	annotations, _ := meta["annotations"].(map[string]any)
	for name := range annotations {
		if strings.HasPrefix(name, "balancing.elf.io/") {
			delete(annotations, name)
		}
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
	plain, _ := json.Marshal(o) // of what was read
	before := r.nodes[x.Name]
	r.nodes[x.Name] = string(plain)
	return x.Verb == "update" && before == string(plain)
}

// ours tells whether somebody is one of the group's processes.
func (s *Set) ours(by string) bool {
	return slices.Contains(s.scene.members(), by) || slices.ContainsFunc(s.topology.Nodes, func(n Node) bool { return n.Name == by })
}

// refusals is the rule that whatever is sent to a model is taken.
type refusals struct {
	idle
	*judge
}

func newModel(j *judge) rule { return &refusals{judge: j} }

func (r *refusals) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Refused:
		r.checked()
		r.broken(x.Model, "it refused what "+x.By+" sent: "+x.What+": "+x.Why, e.Number)
	case event.Session, event.Entry, event.Steered, event.Object:
		r.checked()
	}
}
