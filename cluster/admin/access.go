// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/pki"
)

// Nobody is the role of a caller without a certificate. The handshake lets one in only to enrol.
const Nobody pki.Role = "none"

// own says what an agent or a member may speak about only for itself.
type own uint8

const (
	anyones own = iota
	ownNode     // the request's node must be the name in the certificate
	ownName     // the request's name must be
)

// access is who may call a method, and within which bounds.
type access struct {
	roles []pki.Role
	own   own
	// settled: members must have named their group in the handshake; an empty server may only join.
	settled bool
	// newcomers: members may call that are no servers of the group: not yet, or no more.
	newcomers bool
	// record: the answer comes from the record, or hangs on it; a member that has none yet has no answer.
	record bool
	// within bounds a call from the first byte to the last; 0 for streams, which end when they are done.
	within time.Duration
	// changes is what a call counts in its caller's budget of changes; 0 for one that comes to no log.
	changes int
	// atOnce bounds the calls under way of one caller; 0 leaves it at his budget.
	atOnce int
	// maxMessage bounds each message, bytes, after decompression.
	maxMessage int
}

// maxBoot bounds the id of a boot, bytes, as the record does. It is held here for what never gets there, too.
const maxBoot = 128

const (
	tinyMessage  = 16 << 10 // from strangers, too
	smallMessage = 1 << 20
	largeMessage = 16 << 20 // proposals of a whole batch, pieces of a backup

	quickly  = 10 * time.Second
	planning = 30 * time.Second // of a large record, twice
	changing = time.Minute      // waits for a commit, and an earlier change of the configuration
	slowly   = 10 * time.Minute
)

// accessTable is the one place that says who may do what. What is not in it nobody may call.
func accessTable() map[string]access {
	looking := []pki.Role{pki.Member, pki.Operator, pki.Viewer}
	operating := []pki.Role{pki.Operator}
	joining := []pki.Role{pki.Member}
	// Hosts outside the cluster announce nothing, hold no leases, and are told what is theirs alone.
	agents := []pki.Role{pki.Agent, pki.Host}
	look := access{roles: looking, within: quickly, maxMessage: smallMessage}
	change := access{roles: operating, within: changing, changes: 1, maxMessage: smallMessage}
	read, write := look, change
	read.record, write.record = true, true
	return map[string]access{
		fairleadv1connect.RaftServiceStatusProcedure:   look,
		fairleadv1connect.RaftServicePeersProcedure:    look,
		fairleadv1connect.RaftServiceAddProcedure:      change,
		fairleadv1connect.RaftServiceRemoveProcedure:   change,
		fairleadv1connect.RaftServiceTransferProcedure: change,
		fairleadv1connect.RaftServiceFinalizeProcedure: change,
		fairleadv1connect.RaftServiceSnapshotProcedure: {roles: operating, within: slowly, changes: 1, maxMessage: smallMessage},
		fairleadv1connect.RaftServiceBackupProcedure:   {roles: operating, maxMessage: smallMessage},
		fairleadv1connect.RaftServiceRestoreProcedure:  {roles: operating, changes: 1, maxMessage: largeMessage},

		fairleadv1connect.JoinServiceConfirmProcedure:  {roles: joining, newcomers: true, within: quickly, maxMessage: smallMessage},
		fairleadv1connect.JoinServiceJoinProcedure:     {roles: joining, newcomers: true, own: ownName, within: changing, maxMessage: smallMessage},
		fairleadv1connect.JoinServiceReportProcedure:   {roles: joining, own: ownName, settled: true, within: changing, maxMessage: smallMessage},
		fairleadv1connect.JoinServiceRememberProcedure: {roles: joining, newcomers: true, own: ownName, within: quickly, maxMessage: tinyMessage},
		fairleadv1connect.JoinServiceLeaveProcedure:    {roles: joining, newcomers: true, own: ownName, settled: true, within: changing, maxMessage: smallMessage},

		fairleadv1connect.RecordServiceGetProcedure:          read,
		fairleadv1connect.RecordServiceDescribeProcedure:     read,
		fairleadv1connect.RecordServiceWhyProcedure:          {roles: looking, record: true, within: quickly, maxMessage: tinyMessage},
		fairleadv1connect.RecordServicePlanProcedure:         {roles: looking, record: true, within: planning, atOnce: 4, maxMessage: smallMessage},
		fairleadv1connect.RecordServiceWatchProcedure:        {roles: looking, record: true, maxMessage: smallMessage},
		fairleadv1connect.RecordServiceReleaseHoldProcedure:  write,
		fairleadv1connect.RecordServiceAcceptRewindProcedure: write,
		fairleadv1connect.RecordServiceDrainProcedure:        write,
		fairleadv1connect.RecordServiceMoveProcedure:         write,
		fairleadv1connect.RecordServiceProposeProcedure: {
			roles: joining, settled: true, within: changing, maxMessage: largeMessage,
		},
		fairleadv1connect.RecordServiceCheckLeaderProcedure: {
			roles: joining, settled: true, within: quickly, maxMessage: smallMessage,
		},

		fairleadv1connect.LivenessServiceSilencesProcedure: {roles: joining, settled: true, within: quickly, maxMessage: smallMessage},
		fairleadv1connect.LivenessServiceProbeProcedure:    {roles: joining, settled: true, within: quickly, maxMessage: smallMessage},

		// Members hand on what they cannot sign.
		fairleadv1connect.EnrolServiceEnrolProcedure:       {roles: []pki.Role{Nobody, pki.Member}, within: quickly, maxMessage: tinyMessage},
		fairleadv1connect.EnrolServiceRenewProcedure:       {roles: agents, record: true, own: ownNode, within: quickly, changes: 1, maxMessage: tinyMessage},
		fairleadv1connect.EnrolServiceRenewMemberProcedure: {roles: joining, own: ownName, within: quickly, maxMessage: tinyMessage},
		fairleadv1connect.EnrolServiceOfferProcedure:       write,
		fairleadv1connect.EnrolServiceAdmitHostProcedure:   write,
		fairleadv1connect.EnrolServiceRemoveHostProcedure:  write,
		fairleadv1connect.EnrolServiceRevokeProcedure:      write,

		fairleadv1connect.AgentServiceSyncProcedure:          {roles: agents, own: ownNode, changes: streamChanges, maxMessage: smallMessage},
		fairleadv1connect.AgentServiceAcknowledgeProcedure:   {roles: agents, own: ownNode, within: changing, changes: 1, maxMessage: smallMessage},
		fairleadv1connect.AgentServiceHeartbeatProcedure:     {roles: agents, own: ownNode, maxMessage: tinyMessage},
		fairleadv1connect.AgentServiceAnnouncementsProcedure: {roles: []pki.Role{pki.Agent}, own: ownNode, maxMessage: smallMessage},
		fairleadv1connect.AgentServiceReportSpeakerProcedure: {roles: []pki.Role{pki.Agent}, own: ownNode, within: changing, changes: 1, maxMessage: tinyMessage},
		fairleadv1connect.AgentServiceRenewLeasesProcedure:   {roles: []pki.Role{pki.Agent}, own: ownNode, within: quickly, changes: 1, maxMessage: smallMessage},
	}
}

// admit decides whether a caller may call a method at all; nil if so.
func (a access) admit(caller Caller, procedure string) *Refusal {
	refuse := func(why, remedy string) *Refusal {
		return &Refusal{Code: Forbidden, What: "call " + procedure + " as " + caller.Identity.String(), Why: why, Remedy: remedy}
	}
	if !slices.Contains(a.roles, caller.Identity.Role) {
		return refuse("the role "+string(caller.Identity.Role)+" may not", "use a certificate of role "+joinRoles(a.roles))
	}
	if caller.Membership.Group == "" && (a.settled || caller.ForwardedBy != "") {
		return refuse("a member that belongs to no group may only join one", "let it join first")
	}
	return nil
}

// admitMessage decides whether the caller may speak about what the message is about; nil if so.
func (a access) admitMessage(caller Caller, procedure string, message any) *Refusal {
	var about string
	switch a.own {
	case ownNode:
		if m, ok := message.(interface{ GetNode() string }); ok {
			about = m.GetNode()
		}
	case ownName:
		if m, ok := message.(interface{ GetName() string }); ok {
			about = m.GetName()
		}
	default:
		return nil
	}
	if m, ok := message.(interface{ GetBoot() string }); ok && len(m.GetBoot()) > maxBoot {
		return &Refusal{
			Code: Invalid, What: "call " + procedure + " as " + caller.Identity.String(),
			Why: fmt.Sprintf("a boot id of %d bytes, at most %d are taken", len(m.GetBoot()), maxBoot), Remedy: "send that of the kernel, or use an agent of this release",
		}
	}
	if about == caller.Identity.Name {
		return nil
	}
	return &Refusal{
		Code: Forbidden, What: "call " + procedure + " as " + caller.Identity.String(),
		Why: "it is about " + quote(about) + ", and nobody may speak for another", Remedy: "use the certificate of " + quote(about),
	}
}
