// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"slices"
	"strings"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
)

// Move implements fairleadv1connect.RecordServiceHandler.
func (s *Service) Move(ctx context.Context, req *fairleadv1.MoveRequest) (*fairleadv1.MoveResponse, error) {
	id, node := fsm.ServiceID(req.GetService()), fsm.NodeID(req.GetNode())
	what := "move " + req.GetService()
	if !req.GetUndo() {
		what += " to " + req.GetNode()
	}
	v := s.o.Record.Read()
	if have := v.Group().Format; have < fsm.FormatMoves {
		return nil, &admin.Refusal{
			Code: admin.Invalid, What: what, Why: fmt.Sprintf("the group's format is %d, and members of it cannot read moves, which came with %d", have, fsm.FormatMoves),
			Remedy: "run this release on every member, then `fairlead raft finalize`",
		}
	}
	var c fsm.Command = &fsm.BeginMove{Service: id, Node: node}
	if req.GetUndo() {
		c = &fsm.EndMove{Service: id}
	} else if why, remedy := unmovable(v, id, node); why != "" {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: why, Remedy: remedy}
	}
	outcome, err := s.commit(ctx, what, req.GetReason(), c)
	if err != nil {
		return nil, err
	}
	if err := outcome.Err(); err != nil {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: moveRemedy(outcome)}
	}
	return &fairleadv1.MoveResponse{}, nil
}

// unmovable tells why a Service cannot go to a node, as far as the record's guard does not look; empty if nothing is in the way.
func unmovable(v *fsm.View, id fsm.ServiceID, node fsm.NodeID) (why, remedy string) {
	service, known := fsm.Get[*fsm.Service](v, fsm.TableServices, string(id))
	if !known {
		if b := boundOutside(v, string(id)); b != "" {
			return "it is served by outside load balancers, by binding " + b, "have their driver choose the nodes: only Services whose addresses this group announces can be moved"
		}
		return "", ""
	}
	serves := func(e fsm.Endpoint) bool {
		return e.Node == node && !e.Quiesced && (e.Ready || service.PublishNotReady && !e.Failing || e.Serving && e.Terminating)
	}
	if service.Local && !slices.ContainsFunc(service.Endpoints, serves) {
		return "node " + string(node) + " has no ready endpoint of it, and with externalTrafficPolicy Local only nodes that have one can serve it",
			"have a pod of it there first, or move it to a node that has one: `fairlead get services " + string(id) + " -o yaml`"
	}
	if _, known := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(node)); !known {
		return "", ""
	}
	return unchosen(v, service, node)
}

// unchosen tells that advertisements choose other nodes for all addresses of a Service; empty if one of them may lead to the node.
func unchosen(v *fsm.View, service *fsm.Service, node fsm.NodeID) (why, remedy string) {
	for _, a := range v.Addresses(service.ID) {
		if a.Releasing {
			continue
		}
		kind := excluding(v, service, a, node)
		if kind == "" {
			return "", ""
		}
		if why == "" {
			why = "node " + string(node) + " is chosen by no " + kind + " that is about " + a.Address.String()
			remedy = "move it to a node that spec.nodeSelectors of one choose, or label this node so that they do"
		}
	}
	return why, remedy
}

// excluding names the kind of the advertisements that are about an address and do not choose a node for it; empty if the node
// may have it. One that selects nodes is about next hops at layer 2 as well. Nobody shares the address: it would not be moved.
func excluding(v *fsm.View, service *fsm.Service, a *fsm.Allocation, node fsm.NodeID) string {
	about, chosen := false, false
	for _, ad := range fsm.List[*fsm.Advertisement](v, fsm.TableAdvertisements) {
		if ad.OfPool(a.Pool()) && ad.Chooses(service) {
			about, chosen = true, chosen || ad.Admits(node)
		}
	}
	if about && !chosen {
		return "BGPAdvertisement"
	}
	about, chosen = false, false
	for _, ad := range fsm.List[*fsm.L2Advertisement](v, fsm.TableL2Advertisements) {
		if slices.Contains(ad.Pools, a.Pool()) {
			about, chosen = true, chosen || ad.Admits(node)
		}
	}
	if about && !chosen {
		return "L2Advertisement"
	}
	return ""
}

// boundOutside finds a binding of a Service to an outside load balancer; empty for none.
func boundOutside(v *fsm.View, id string) string {
	namespace, name, _ := strings.Cut(id, "/")
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		if of, _, _ := strings.Cut(string(b.ID), "/"); b.Backend.Kind == "Service" && b.Backend.Name == name && of == namespace {
			return string(b.ID)
		}
	}
	return ""
}

// moveRemedy tells what to do about a move that the record refused.
func moveRemedy(o fsm.Outcome) string {
	switch {
	case o.Reject == fsm.RejectInUse:
		return "give it an address of its own, or drain the node that it shall leave: `fairlead drain node NAME`; next hops are of an address, whoever shares it"
	case o.Reject == fsm.RejectWrongState && strings.HasPrefix(o.Subject, "node "):
		return "choose a node that is eligible, up and not drained: `fairlead get nodes`, `fairlead get drains`"
	case o.Reject == fsm.RejectWrongState:
		return "take the annotation fairlead.io/nextHops: all off the Service"
	case strings.HasPrefix(o.Subject, "node "):
		return "`fairlead get nodes` lists what there is"
	}
	return "`fairlead get services` lists what there is"
}
