// SPDX-License-Identifier: Apache-2.0

package leader

// Remedy says what a person can do about a reason, as docs/why.md has it; empty where there is nothing to mend, or where
// the reason's own text says it.
func (c Code) Remedy() string {
	switch c {
	case FromReleased, GivenUp:
		return "wait until every member has withdrawn the paths, or see which one does not answer: `fairlead raft status`"
	case Bridges, WaitsForRules:
		return "see what keeps the agents of the new nodes from acknowledging: `fairlead get nodes`, and their logs"
	case LastAside, WaitsForOther:
		return "have a ready endpoint on another node, or see why the other nodes may not be announced"
	case NodeDrained:
		return "nothing while the drain lasts; `fairlead drain node NAME --undo` ends it"
	case NodeCordoned:
		return "nothing while it lasts; `kubectl uncordon` ends it"
	case NodeTainted:
		return "nothing while it lasts; take the taint off the Node, or out of nodes.taints of the controllers"
	case ServiceDrained:
		return "nothing while the drain lasts; `fairlead drain service NAME --undo` ends it"
	case Moved, MovedHere, MovedAway:
		return "nothing while the move lasts; `fairlead move SERVICE --undo` ends it"
	case WaitsForMove:
		return "bring the node back, move the Service to another one, or end the move: `fairlead move SERVICE --undo`; who shares an address moves before it is shared"
	case LastHop, WaitsForLiveness, NodeDown:
		return "bring the node back, or have pods of the Service on another one"
	case NoEndpoint:
		return "nothing, if no pod shall run there; else look at the Service's selector and its EndpointSlices"
	case EndpointNotReady:
		return "look at the readiness of the pods there"
	case NodeUnknown, NodeGone:
		return "wait for the pods to move, or see why the Node is not in the cluster: `kubectl get node`"
	case NodeIneligible, NodeNotReady, NodeCutOff, NodeDeleting:
		return "see the Node's conditions: `kubectl describe node`"
	case NodeExcluded:
		return "take the label node.kubernetes.io/exclude-from-external-load-balancers off the Node, if it shall carry addresses"
	case NodeNoAddress, NodeLacksFamily:
		return "give the Node an address of the type and family (kubelet --node-ip), or the Service an address of the node's family"
	case NodeNotChosen:
		return "have a pod of the Service on a node that spec.nodeSelectors of a BGPAdvertisement choose, or label this one"
	case NodeAgentDown:
		return "start the agent there, and look at its log"
	case Replaced:
		return "see what keeps the new address from being announced"
	case NotLoadBalancer:
		return "set spec.type to LoadBalancer"
	case Headless:
		return "nothing, if clients shall dial its endpoints; else make the Service anew without `clusterIP: None`"
	case OtherClass, Unclassed:
		return "make the Service anew with the class of this group; spec.loadBalancerClass cannot be changed"
	case Foreign:
		return "take the label service.kubernetes.io/service-proxy-name off the Service"
	case WaitsForEvidence:
		return "see whether the sources can be read: `fairlead holds list`, and the leader's log; a complete list settles it"
	case WaitsForOperator:
		return "`fairlead holds list` shows what is held with it; `fairlead holds release ID` lets it go, and what comes back stays"
	case WaitsForHolder:
		return "wait until its lease ends, some seconds; where its pool has holders go on answering, bring the node back, or release the hold l2-NODE once it is off: `fairlead holds list`"
	case WaitsForMember:
		return "see whether the member runs: `fairlead raft status`. One that does waits for a switch, which its log names: bring the session back, or wait until the switch keeps nothing any more, 631 s after the session was lost at the latest unless a BGPPeer says otherwise. One that does not: start it again, or wait: `fairlead get members` says for how long it has been away, and after how long it is not waited for any more"
	case WaitsForRoute:
		return "wait until no path is left; what is waited for is told beside it"
	case Deleting:
		return "wait until no path is left, if it has addresses; what is waited for is told beside it"
	case WaitsForQuarantine:
		return "have every source readable in full, so that a complete view ends the quarantine"
	case WaitsForNextHop:
		return "have a ready endpoint on an eligible node"
	}
	return outsideRemedy(c)
}
