// SPDX-License-Identifier: Apache-2.0

package fsm

import "net/netip"

// Frontend is one port that clients dial on each address of a service.
type Frontend struct {
	Name     string `pb:"1" json:"name,omitempty"`
	Port     Port   `pb:"2" json:"port"`
	NodePort uint16 `pb:"3" json:"nodePort,omitempty"`
}

// EndpointPort is where an endpoint answers for the frontend of the same name and protocol.
type EndpointPort struct {
	Name string `pb:"1" json:"name,omitempty"`
	Port Port   `pb:"2" json:"port"`
}

// Endpoint is one pod (or static address) that serves a service. What is small stands together: there are many of these in
// memory.
type Endpoint struct {
	Address     netip.Addr `pb:"1" json:"address"`
	Node        NodeID     `pb:"2" json:"node,omitempty"`
	Ready       bool       `pb:"3" json:"ready"`
	Serving     bool       `pb:"4" json:"serving"`
	Terminating bool       `pb:"5" json:"terminating"`
	// Weight is its share of new connections beside the others'; 0 counts as 1. From format 2 on.
	Weight uint16 `pb:"8" json:"weight,omitempty"`
	// Quiesced is weight 0: it takes no new connections, and those that it has go on. From format 2 on.
	Quiesced bool `pb:"9" json:"quiesced,omitempty"`
	// Failing says that it is not Ready because it does not answer probes; its sources show it ready. From format 2 on.
	Failing bool `pb:"10" json:"failing,omitempty"`
	// Offer is shared by very many, so that each has a pointer to it; nil for neither ports nor hints. Nobody writes to it.
	*Offer `pb:"inline"`
}

// Offer is what an endpoint offers, and to whom.
type Offer struct {
	Ports []EndpointPort `pb:"6" json:"ports"`
	// Hints say for whom it is (KEP-2433, KEP-4444); empty for everybody. From format 2 on.
	Hints []Hint `pb:"7" json:"hints,omitempty"`
}

// Ports are where it answers.
func (e Endpoint) Ports() []EndpointPort {
	if e.Offer == nil {
		return nil
	}
	return e.Offer.Ports
}

// Hints are for whom it is; none for everybody.
func (e Endpoint) Hints() []Hint {
	if e.Offer == nil {
		return nil
	}
	return e.Offer.Hints
}

// Hint names a node or a zone whose clients an endpoint is for; one of both is empty.
type Hint struct {
	Node NodeID `pb:"1" json:"node,omitempty"`
	Zone string `pb:"2" json:"zone,omitempty"`
}

// Pending says why a service has no address, or not all that it asked for: a stable code for programs and a
// sentence with the remedy for people. The zero Pending is "nothing is missing".
type Pending struct {
	Code string `pb:"1" json:"code,omitempty"`
	Text string `pb:"2" json:"text,omitempty" max:"4096"`
}

// Service is a Kubernetes Service as the group last agreed to see it: one of type LoadBalancer that is the group's, or another one
// for its spec.externalIPs and, where the group serves those, its node ports, ClusterIPs and what other controllers gave it. What is small
// stands together, as in Endpoint.
type Service struct {
	seal
	ID        ServiceID  `pb:"1" json:"id"`
	UID       string     `pb:"2" json:"uid"`
	Version   uint64     `pb:"3" json:"version"` // resourceVersion acted on; 0 where the source has none
	Frontends []Frontend `pb:"6" json:"frontends"`
	Endpoints []Endpoint `pb:"7" json:"endpoints"`
	// Local is externalTrafficPolicy: Local.
	Local           bool `pb:"8" json:"local"`
	PublishNotReady bool `pb:"9" json:"publishNotReady"`
	// Deleting is set while its routes and addresses are being taken back.
	Deleting bool `pb:"12" json:"deleting"`
	// AllNodes asks for every eligible node as a next hop, not only those with endpoints.
	AllNodes bool `pb:"14" json:"allNodes"`
	// NodePortsIPv4 and NodePortsIPv6 say that nodes serve its node ports in that family, whatever addresses it has. From format 2
	// on; otherwise, and before, it is in the families of its addresses.
	NodePortsIPv4 bool `pb:"20" json:"nodePortsIPv4,omitempty"`
	NodePortsIPv6 bool `pb:"21" json:"nodePortsIPv6,omitempty"`
	// InternalLocal is internalTrafficPolicy: Local, which is about ClusterIPs. From format 2 on.
	InternalLocal bool `pb:"23" json:"internalLocal,omitempty"`
	// HealthCheckNodePort is where each node tells how many ready endpoints it has; 0 for nowhere, and always unless Local.
	// From format 2 on.
	HealthCheckNodePort uint16  `pb:"18" json:"healthCheckNodePort,omitempty"`
	Pending             Pending `pb:"11" json:"pending"`
	History             Trail   `pb:"13" json:"history"`
	// ClusterIPs are its addresses inside the cluster, which an API server gave it, where nodes resolve those. From format 2 on.
	ClusterIPs []netip.Addr `pb:"22" json:"clusterIPs,omitempty"`
	// Rare is nil for none of it. Whoever changes it does so by SetRare.
	*Rare `pb:"inline"`
}

// formatInPart is the first format that knows Services for what needs no address of ours: their node ports, ClusterIPs, or addresses that
// others gave them.
const formatInPart uint32 = 2

// HasNodePorts tells whether nodes serve its node ports whatever addresses it has.
func (s *Service) HasNodePorts() bool { return s.NodePortsIPv4 || s.NodePortsIPv6 }

// ServedInside tells whether nodes serve it inside the cluster, by ClusterIP.
func (s *Service) ServedInside() bool { return len(s.ClusterIPs) > 0 }

// Table is TableServices.
func (*Service) Table() Table { return TableServices }

// Key is "namespace/name".
func (s *Service) Key() string { return string(s.ID) }

// Ports lists what the service answers on.
func (s *Service) Ports() []Port {
	out := make([]Port, 0, len(s.Frontends))
	for _, f := range s.Frontends {
		out = append(out, f.Port)
	}
	return out
}

// PutService adds or replaces a service. Its history is kept by Apply; the proposer's is ignored. An older
// version of the same object is refused: nothing travels back in time (design §5).
type PutService struct {
	Service Service `pb:"1"`
}

// Kind is KindPutService.
func (*PutService) Kind() Kind { return KindPutService }

func (c *PutService) apply(tx *txn) Outcome {
	next := c.Service
	subject := "service " + string(next.ID)
	if next.ID == "" {
		return refuse(RejectInvalid, subject, "", "namespace/name")
	}
	if next.HasNodePorts() || next.ServedInside() || len(next.ByOthers()) > 0 {
		if out, old := tx.formatBelow(formatInPart, subject); old {
			return out
		}
	}
	next.History = nil
	rare := next.Besides()
	if rare.Verdicts, rare.ProbedSince = nil, (Revision{}); rare.Probe.Wanted() {
		rare.ProbedSince = tx.revision()
	}
	tx.state.alike.sameEndpoints(next.Endpoints)
	what := "seen"
	if old, ok := find[*Service](tx.rows, TableServices, string(next.ID)); ok {
		rare.Verdicts = old.VerdictsFor(&next)
		if rare.Probe.Wanted() && old.probedAlike(&next) {
			rare.ProbedSince = old.ProbedSince()
		}
		if old.UID == next.UID && next.Version < old.Version {
			return refuse(RejectStaleRevision, subject, utoa(old.Version), utoa(next.Version))
		}
		next.History, what = old.History, changeOf(old, &next)
	}
	if what != "" {
		next.History = tx.step(next.History, what)
	}
	next.SetRare(rare)
	tx.put(&next)
	return tx.ok()
}

// changeOf names the change that a reader of the history would ask about; endpoints come and go too often.
func changeOf(old, next *Service) string {
	switch {
	case old.UID != next.UID:
		return "created anew under the same name"
	case !old.Deleting && next.Deleting:
		return "deleted, addresses are being taken back"
	case old.Deleting && !next.Deleting:
		return "wanted again"
	case old.Pending.Code != next.Pending.Code && next.Pending.Code != "":
		return "pending: " + next.Pending.Text
	case old.Pending.Code != "" && next.Pending.Code == "":
		return "no longer pending"
	}
	return ""
}

// note adds a step to a service's history.
func (tx *txn) note(s *Service, what string) {
	next := *s
	next.History = tx.step(s.History, what)
	tx.put(&next)
}

// DeleteService removes a service that owns no address any more.
type DeleteService struct {
	ID  ServiceID `pb:"1"`
	UID string    `pb:"2"`
}

// Kind is KindDeleteService.
func (*DeleteService) Kind() Kind { return KindDeleteService }

func (c *DeleteService) apply(tx *txn) Outcome {
	subject := "service " + string(c.ID)
	s, ok := find[*Service](tx.rows, TableServices, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if s.UID != c.UID {
		return refuse(RejectStaleRevision, subject, s.UID, c.UID)
	}
	if held := allocationsOf(tx.rows, c.ID); len(held) > 0 {
		return refuse(RejectInUse, subject, "address "+held[0].Address.String(), "none")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	tx.endDrain(DrainService, string(c.ID), "the Service is gone")
	tx.endMove(c.ID, "the Service is gone")
	tx.bury(s, s.History, "gone")
	return tx.ok()
}
