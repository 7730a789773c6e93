// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// putDrivers brings what is needed to call drivers into the record.
func (p *planner) putDrivers() {
	for _, d := range p.in.Drivers {
		if d.URL == "" {
			p.explain(world.KindDriver, d.ID.String(), WaitsForMend, "it has no URL: set spec.url")
			continue
		}
		want := driverOf(d)
		if old, known := fsm.Get[*fsm.Driver](p.in.Record, fsm.TableDrivers, want.Name); !known || !sameDriver(old, &want) {
			p.propose("as its object says", &fsm.PutDriver{Driver: want})
		}
	}
}

func driverOf(d *world.Driver) fsm.Driver {
	out := fsm.Driver{
		Name: d.ID.String(), UID: d.UID, URL: d.URL, AcceptsDryRun: d.AcceptsDryRun, Draining: d.Draining, Secret: d.Secret,
		Concurrent: uint32(max(d.Concurrent, 0)), Settle: d.Settle,
	}
	for _, t := range d.Timeouts {
		out.Timeouts = append(out.Timeouts, fsm.WebhookTimeout{Webhook: t.Webhook, Timeout: t.Budget})
	}
	slices.SortStableFunc(out.Timeouts, func(a, b fsm.WebhookTimeout) int { return strings.Compare(a.Webhook, b.Webhook) })
	return out
}

func sameDriver(a, b *fsm.Driver) bool {
	return a.UID == b.UID && a.URL == b.URL && slices.Equal(a.Timeouts, b.Timeouts) && a.AcceptsDryRun == b.AcceptsDryRun &&
		a.Draining == b.Draining && a.Secret == b.Secret && a.Concurrent == b.Concurrent && a.Settle == b.Settle
}

// callable tells whether a driver can be called: it is there, or the record knows it still.
func (p *planner) callable(driver world.ID) bool {
	if _, ok := p.drivers[driver]; ok {
		return true
	}
	_, ok := fsm.Get[*fsm.Driver](p.in.Record, fsm.TableDrivers, driver.String())
	return ok
}

// deleteDrivers drops drivers whose objects are surely gone and that nothing needs any more.
func (p *planner) deleteDrivers() {
	needed := map[string]bool{}
	for _, row := range p.rows {
		needed[row.Driver] = true
	}
	for _, o := range p.objects {
		needed[o.driver], needed[o.status.DriverID.String()] = true, true
	}
	for _, r := range p.strange {
		needed[r.DriverID.String()] = true
	}
	for _, d := range fsm.List[*fsm.Driver](p.in.Record, fsm.TableDrivers) {
		id := splitID(d.Name)
		switch {
		case p.drivers[id] != nil:
		case !p.gone(world.KindDriver, id, d.UID):
			p.explain(world.KindDriver, d.Name, WaitsForEvidence, "absent, and not certain to be gone")
		case needed[d.Name]:
			p.explain(world.KindDriver, d.Name, WaitsForBackends, "its object is gone; it stays while load balancers of it do")
		case p.quarantined:
			p.explainQuarantine(world.KindDriver, d.Name)
		default:
			p.propose("its object is gone", &fsm.DeleteDriver{Name: d.Name})
		}
	}
}

func (p *planner) explainQuarantine(kind world.Kind, name string) {
	p.explain(kind, name, WaitsForQuarantine, quarantineText)
}
