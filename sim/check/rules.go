// SPDX-License-Identifier: Apache-2.0

package check

// Rule is one of design §9's, or the one that holds for all models.
type Rule struct {
	ID   string
	Text string
	// Missing says why it is not checked yet; empty for those that are.
	Missing string
}

// Rules lists all rules, in order.
func Rules() []Rule {
	return []Rule{
		{ID: "S1", Text: "members at the same applied index have equal digests"},
		{ID: "S2", Text: "within an epoch an acknowledged command is in the state of every later leader; reads and writes are linearizable"},
		{ID: "S3", Text: "an address belongs to one service, or to services that agreed to share it with disjoint ports"},
		{ID: "S4", Text: "what we put on an outside load balancer is covered by a binding in the record; what others put there is never touched"},
		{ID: "S5", Text: "a record goes only after the outside system confirmed the removal, or was never asked to add, or an operator said forget"},
		{ID: "S6", Text: "no ensure takes effect after the confirmed deregistration of its binding, and no deregistration removes what a live binding holds"},
		{ID: "S7", Text: "one operation in flight per subject"},
		{ID: "S8", Text: "switches forward an address while a committed healthy next hop exists, only to committed ones, and traffic gets through"},
		{ID: "S9", Text: "no node is announced for an address before its boot carried out the rules, and no rule goes while a path may lead to it"},
		{ID: "S10", Text: "no answer for an address is decided outside a valid lease, and leases of one address never overlap"},
		{ID: "S11", Text: "nothing without our mark is changed"},
		{ID: "S12", Text: "a wrong view of Kubernetes removes nothing without an operator's word"},
		{ID: "S13", Text: "the revision that an agent acts on never runs back"},
		{ID: "S14", Text: "no call at a socket gets to a backend whose removal its node acknowledged"},
		{ID: "S15", Text: "the number of a policy of client-side balancing is its own, and stays"},
		{ID: "S16", Text: "a tunnel address is one host's, and clients are led there only once its node acknowledged it and what is behind it"},
		{ID: "S17", Text: "calls to a policy of listed addresses get to those that their node can reach, or to all if that is none; the record says what most nodes find"},
		{ID: "S18", Text: "an endpoint that most nodes cannot reach rests while others of its Service can be reached, and none is said to be bad that was not found to be"},
		{ID: "S19", Text: "a policy that spares its own backends leaves these alone on their nodes, and nobody else"},
		{ID: "S20", Text: "whatever texts objects have, all that is planned can be recorded"},
		{ID: "S21", Text: "the end of a BGP speaker's process costs sessions alone: another one speaks in time, paths stay, and so do process and leader"},
		{ID: "S22", Text: "whose certificate is revoked gets through to nobody who knows, and nobody else is refused for his"},
		{ID: "S23", Text: "once somebody answered by the record of an epoch, nobody answers by that of a former one"},
		{ID: "S24", Text: "the snapshots that an undisturbed member is sent are bounded"},
		{ID: "S25", Text: "`raft status` calls those healthy who have what was committed, and nobody else"},
		{ID: "S26", Text: "a member whose data folder was put back to an earlier state neither votes nor follows"},
		{ID: "S27", Text: "who is cut off from every majority says so within a stated time, however it spent that"},
		{ID: "S28", Text: "a member whose copy of the record is another one than the group's ends by itself within a stated time, and nobody else does"},
		{ID: "L1", Text: "once faults end, desired, observed and applied agree everywhere within a stated time"},
		{ID: "L2", Text: "every deregistration completes once its driver answers again"},
		{ID: "L3", Text: "with a quorum connected, new work completes within a stated time whatever the minority does"},
		{ID: "L4", Text: "every member that runs undisturbed has within a stated time what was committed"},
		{ID: "model", Text: "no switch, kernel, balancer or API server has to refuse what it is sent"},
	}
}

// makers gives a checker for each rule that can be checked.
func makers() map[string]func(*judge) rule {
	return map[string]func(*judge) rule{
		"S1": newS1, "S2": newS2, "S3": newS3, "S4": newS4, "S5": newS5, "S6": newS6, "S7": newS7, "S8": newS8, "S9": newS9, "S10": newS10,
		"S11": newS11, "S12": newS12, "S13": newS13, "S14": newS14, "S15": newS15, "S16": newS16, "S17": newS17, "S18": newS18, "S19": newS19, "S20": newS20, "S21": newS21, "S22": newS22, "S23": newS23, "S24": newS24, "S25": newS25, "S26": newS26, "S27": newS27, "S28": newS28,
		"L1": newL1, "L2": newL2, "L3": newL3, "L4": newL4, "model": newModel,
	}
}
