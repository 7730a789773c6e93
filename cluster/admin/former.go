// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"slices"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// believe puts the leader's list of members in place of a former member's, which nobody has told of changes since; without a leader's
// answer nothing is said of how the others are, or all of them would be called unhealthy, and `raft recover` advised.
func believe(response, leader *fairleadv1.StatusResponse) {
	if leader == nil {
		forget(response)
		return
	}
	response.ConfigurationIndex = leader.GetConfigurationIndex()
	response.Members = slices.DeleteFunc(response.GetMembers(), func(m *fairleadv1.Member) bool {
		return findMember(leader, m.GetServerId()) == nil
	})
	for _, member := range leader.GetMembers() {
		if findMember(response, member.GetServerId()) == nil {
			response.Members = append(response.Members, member) // as the leader knows it: it was not asked
		}
	}
	sortMembers(response.GetMembers())
	// The removal that it knows of may have come to nothing.
	response.Former = findMember(leader, response.GetAnsweredBy()) == nil
}

// forget takes back what a former member would say of the others.
func forget(response *fairleadv1.StatusResponse) {
	response.Leader = ""
	response.Members = slices.DeleteFunc(response.GetMembers(), func(m *fairleadv1.Member) bool { return m.GetServerId() == response.GetAnsweredBy() })
	for _, member := range response.GetMembers() {
		member.Leader, member.Healthy = false, false
		member.Unhealthy = fmt.Sprintf("is not known of: %s, which answers, is no member any more", response.GetAnsweredBy())
	}
}

// forgotten tells whether who answers is a former member that does not know how the others are.
func forgotten(status *fairleadv1.StatusResponse) bool {
	return status.GetFormer() && status.GetLeader() == ""
}

// disclaim says that the one who answers is no member, if so.
func disclaim(status *fairleadv1.StatusResponse) string {
	switch {
	case forgotten(status):
		return fmt.Sprintf("%s, which answers, is no member of the group any more and does not know how the others are: what stands here is what it knew last; ask one of them", status.GetAnsweredBy())
	case status.GetFormer():
		return fmt.Sprintf("%s, which answers, is no member of the group any more: what stands here is the leader's word", status.GetAnsweredBy())
	default:
		return ""
	}
}
