// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// restless is a cluster whose record others write to, too, and whose plans are carried out in part, late or never.
type restless struct {
	*drawn
	views  []*fsm.View // earlier ones
	newest Result
}

// disturb draws one thing that happens besides what happens to objects.
func (d *restless) disturb(t *rapid.T) {
	bindings := fsm.List[*fsm.Binding](d.record.state.Read(), fsm.TableBindings)
	var b *fsm.Binding
	if len(bindings) > 0 {
		b = rapid.SampledFrom(bindings).Draw(t, "binding")
	}
	what := rapid.SampledFrom([]string{"remove", "put", "remake", "write", "erase", "strip", "list", "judge", "restore", "copy", "deafen"}).Draw(t, "disturbance")
	switch {
	case what == "list":
		kind := rapid.SampledFrom(world.Kinds()).Draw(t, "kind")
		d.unlisted[kind] = !d.unlisted[kind]
		d.away[kind] = rapid.Bool().Draw(t, "away")
	case what == "judge":
		for _, q := range d.newest.Questions {
			j := Judgement{Pods: q.Pods, Failed: rapid.Bool().Draw(t, "failed")}
			if rapid.Bool().Draw(t, "keeps") {
				j.Keep = []string{q.Pods[0].UID}
			}
			d.judged[q.Owner] = j
		}
	case what == "restore" && rapid.IntRange(0, 3).Draw(t, "surely") == 0:
		_, epoch, _ := d.record.state.Identity()
		d.record.must(&fsm.NewEpoch{Group: "test", Epoch: epoch + 1, Cause: "restored"})
	case what == "copy": // as from a snapshot: rows have other slots
		state, err := d.record.state.Read().Copy()
		if err != nil {
			t.Fatalf("copy: %v", err)
		}
		d.record.state = state
	case what == "deafen":
		action := rapid.SampledFrom([]fsm.Action{fsm.ActionAddress, fsm.ActionEnsure, fsm.ActionDeregister}).Draw(t, "action").String()
		d.record.deaf[action] = !d.record.deaf[action]
	case b != nil:
		d.disturbBinding(t, what, b)
	}
}

// disturbBinding is what hands and others do to a binding or its BackendRecord.
func (d *restless) disturbBinding(t *rapid.T, what string, b *fsm.Binding) {
	id := splitID(string(b.ID))
	at := slices.IndexFunc(d.records, func(r *world.BackendRecord) bool { return r.ID == id })
	apply := func(c fsm.Command) { d.record.apply([]fsm.Proposal{{Actor: "test", Command: c}}) }
	switch what {
	case "remove":
		apply(&fsm.RemoveBinding{ID: b.ID})
	case "put", "remake":
		if what == "remake" { // as another one of the same name
			apply(&fsm.Forget{ID: b.ID})
		}
		c := &fsm.PutBinding{ID: b.ID, Balancer: b.Balancer, Owner: b.Owner, Address: b.Address, Parameters: b.Parameters, Backend: b.Backend, Attributes: b.Attributes, Ensure: b.Ensure}
		rapid.SampledFrom([]func(){
			func() { c.Parameters = []fsm.KV{{Key: "by", Value: "hand"}} },
			func() { c.Backend.Target += "9" },
			func() { c.Backend.UID = "" },
			func() { c.Address += "9" },
			func() { c.Owner = "" },
			func() { c.ID += "x" },
		}).Draw(t, "put")()
		apply(c)
	case "write":
		l, _ := fsm.Get[*fsm.LoadBalancer](d.record.state.Read(), fsm.TableBalancers, string(b.Balancer))
		r := leftRecord(b, l)
		r.Mirror = rapid.SampledFrom([]string{"", b.UID, "test/" + b.UID, "other/" + b.UID, "test/x"}).Draw(t, "mirror")
		r.Deleting = rapid.Bool().Draw(t, "deleting")
		if at >= 0 {
			d.records = slices.Delete(d.records, at, at+1)
		}
		d.records = append(d.records, r)
	case "erase", "strip":
		if at < 0 {
			return
		}
		if what == "strip" {
			d.deleted = append(d.deleted, d.deletion(world.KindBackendRecord, string(b.ID)))
		}
		d.records = slices.Delete(d.records, at, at+1)
	}
}

// step plans, from the record as it is or, late, as it was, and does some of what comes of it.
func (d *restless) step(t *rapid.T) {
	in := d.input()
	in.Record = d.record.state.Read()
	d.views = append(d.views, in.Record)
	late := rapid.IntRange(0, 9).Draw(t, "late") == 0
	if late {
		in.Record = rapid.SampledFrom(d.views).Draw(t, "view")
	}
	d.newest = d.record.plan(in)
	d.checkKept(t, in.Record)
	if done := rapid.IntRange(0, 4).Draw(t, "done"); !late && done > 0 {
		list := d.newest.Proposals
		d.record.apply(list[:len(list)*done/4])
	}
}

// checkKept holds what an index has, and not by being made anew, to what one has that has seen nothing before.
func (d *restless) checkKept(t *rapid.T, record *fsm.View) {
	kept, anew := d.record.kept, new(Index)
	anew.follow(record)
	if got, want := contents(kept), contents(anew); !reflect.DeepEqual(got, want) {
		t.Fatalf("kept: %v\nanew: %v", got, want)
	}
	if kept.edition != uint64(d.record.plans) {
		t.Fatalf("after %d plans the index is in its edition %d: it was begun anew", d.record.plans, kept.edition)
	}
}

// contents is what an index has, but for slots and editions.
func contents(x *Index) map[string][]*fsm.Binding {
	out := map[string][]*fsm.Binding{}
	put := func(key string, some ...*bound) {
		for _, b := range some {
			out[key] = append(out[key], b.Binding)
		}
	}
	slots := map[int]bool{}
	for name, b := range x.named {
		put("named "+string(name)+" "+b.id.String(), b)
		slots[b.slot] = b.slot < x.slots
	}
	out[fmt.Sprint(len(slots), " slots, ", x.used)] = nil
	for spot, some := range x.spots {
		put(fmt.Sprint("spot ", spot), some...)
	}
	for owner, h := range x.owners {
		out[fmt.Sprint(owner, " ", h.count, " ", h.registered)] = nil
		for key, some := range h.of {
			put(fmt.Sprint(owner, " ", key), some...)
		}
	}
	return out
}

// What an index plans that was kept through whatever happened is what one plans that has seen nothing before.
func TestPropertyAnIndexThatWasKeptPlansAsOneBuiltAnew(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		d := &restless{drawn: newDrawn(t)}
		for _, name := range drawnNames {
			if rapid.IntRange(0, 9).Draw(t, "there") > 0 {
				d.see(name, d.line(t, name))
			}
		}
		d.step(t)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "next") {
			case 0, 1:
				d.change(t)
			case 2:
				d.disturb(t)
			case 3:
				d.record.work()
			}
			d.step(t)
		}
	})
}

// An index of a record that lost nearly everything is made anew, and small.
func TestAnIndexShrinksWithItsRecord(t *testing.T) {
	c := crowdedCluster(t, 1, 2*spareSlots)
	c.record.settle(c.input())
	if n := c.record.kept.slots; n != 2*spareSlots {
		t.Fatalf("%d slots for %d bindings", n, 2*spareSlots)
	}
	c.groups = nil
	c.record.settle(c.input())
	c.pods = c.pods[:10]
	c.object(strings.Fields("group shop/group-0 lbs=edge select=app:0 ports=80/TCP"))
	c.record.settle(c.input())
	if n := c.record.kept.slots; n != 10 {
		t.Errorf("%d slots for 10 bindings", n)
	}
}
