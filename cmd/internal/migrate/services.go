// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/migrate"
)

// judgeServices asks the leader's own plan what it would make of the cluster, with an empty record.
func (p *Plan) judgeServices(in migrate.Installation, conf legacy.Config) error {
	if _, err := value(in, migrate.ConfigMapRules, "SWITCH"); err != nil {
		return err
	}
	record, err := emptyRecord()
	if err != nil {
		return err
	}
	w := in.World.Clone()
	p.leaveOutUnusable(&w)
	plan := leader.Plan(leader.Input{Views: []leader.Admitted{{World: &w, Complete: true}}, Record: record, Options: leader.Options{
		ExternalIPs: leader.WarnExternalIPs, // as the controller.yaml that is made says
		LegacyPeers: func(world.ConfigMap) ([]fsm.Peer, []error, error) {
			out := make([]fsm.Peer, 0, len(conf.Peers))
			for _, peer := range conf.Peers {
				peer.Name = peer.Address.String()
				out = append(out, derive.Record(peer, ""))
			}
			return out, nil, nil
		},
	}})
	for _, e := range plan.Waiting {
		if e.Kind == string(fsm.TableNodeConfigs) {
			return fmt.Errorf("ConfigMap %s: %s", migrate.ConfigMapRules, e.Text)
		}
	}
	unaddressed := 0
	for _, proposal := range slices.Concat(plan.Urgent, plan.Bulk) {
		switch c := proposal.Command.(type) {
		case *fsm.PutService:
			switch {
			case c.Service.Pending.Code == "":
			case len(c.Service.External()) > 0:
				p.Losing = append(p.Losing, fmt.Sprintf("Service %s: %s", c.Service.ID, c.Service.Pending.Text))
			default:
				unaddressed++
			}
		case *fsm.Allocate:
			p.Addresses = append(p.Addresses, c.Address)
		}
	}
	slices.Sort(p.Losing)
	slices.SortFunc(p.Addresses, netip.Addr.Compare)
	p.Addresses = slices.Compact(p.Addresses)
	if unaddressed > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d Services of type LoadBalancer have no externalIPs: as before they get no address, until a pool gives them one", unaddressed))
	}
	return nil
}

// leaveOutUnusable takes Services that a source would not use out of a World, and counts those that have an address today.
func (p *Plan) leaveOutUnusable(w *world.World) {
	w.Services = slices.DeleteFunc(w.Services, func(s *world.Service) bool {
		at := slices.IndexFunc(w.Problems, func(x world.Problem) bool {
			return x.Severity == world.Failed && x.Object.Kind == world.KindService && x.Object.ID == s.ID
		})
		if at >= 0 && len(s.ExternalIPs) > 0 {
			p.Losing = append(p.Losing, strings.TrimPrefix(w.Problems[at].String(), "kubernetes: "))
		}
		return at >= 0
	})
}

// emptyRecord is that of a group that was just founded.
func emptyRecord() (*fsm.View, error) {
	s := fsm.New()
	entry, err := fsm.EncodeEntry(0, []fsm.Proposal{{Command: &fsm.InitGroup{Group: "migration", Format: fsm.NewestFormat}}})
	if err != nil {
		return nil, err
	}
	s.ApplyEntries([]fsm.LogEntry{{Index: 1, Term: 1, Data: entry}})
	return s.Read(), nil
}
