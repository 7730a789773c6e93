// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"slices"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// writingWithin is for how long a member may wait for one write of its disk and be called healthy. It takes part in nothing meanwhile.
const writingWithin = 2 * time.Second

// doubt takes the health of members back that say of themselves what no healthy one does, whatever their leader thinks of them.
func doubt(status *fairleadv1.StatusResponse) {
	for _, member := range status.GetMembers() {
		if writes := time.Duration(member.GetWritingMs()) * time.Millisecond; writes > writingWithin {
			member.Healthy = false
			member.Unhealthy = fmt.Sprintf("has waited for a write of its disk for %s", writes.Round(time.Second))
		}
	}
	for _, told := range tellers(status) {
		right := most(status, told)
		for _, member := range told {
			if right != "" && member.GetDigest() != right {
				member.Healthy = false
				member.Unhealthy = fmt.Sprintf("has another record at index %d than most voters", member.GetDigestAt())
			}
		}
	}
}

// disagreement finds two members whose records differ at the same index, which must not be (S1). Members of other groups
// or epochs are not seen here: they refuse each other in the handshake, and show as unreachable with that reason.
func disagreement(status *fairleadv1.StatusResponse) (first, other *fairleadv1.Member) {
	for _, told := range tellers(status) {
		for _, member := range told[1:] {
			if member.GetDigest() != told[0].GetDigest() {
				return told[0], member
			}
		}
	}
	return nil, nil
}

// tellers are those who told the digest of their record just now, those with the same index together.
func tellers(status *fairleadv1.StatusResponse) (out [][]*fairleadv1.Member) {
	for _, member := range status.GetMembers() {
		if member.GetDigestAt() == 0 || member.GetUnreachable() != "" || member.GetDigest() == "" {
			continue
		}
		i := slices.IndexFunc(out, func(told []*fairleadv1.Member) bool { return told[0].GetDigestAt() == member.GetDigestAt() })
		if i < 0 {
			i, out = len(out), append(out, nil)
		}
		out[i] = append(out[i], member)
	}
	return out
}

// most is the digest that a majority of all voters has, those that told none included; empty without one: nobody is judged then, by a leader's either.
func most(status *fairleadv1.StatusResponse, told []*fairleadv1.Member) (digest string) {
	voters, votes := 0, map[string]int{}
	for _, member := range status.GetMembers() {
		if member.GetSuffrage() == fairleadv1.Suffrage_SUFFRAGE_VOTER {
			voters++
		}
	}
	for _, member := range told {
		if member.GetSuffrage() != fairleadv1.Suffrage_SUFFRAGE_VOTER {
			continue
		}
		if votes[member.GetDigest()]++; votes[member.GetDigest()] > voters/2 {
			return member.GetDigest()
		}
	}
	return ""
}
