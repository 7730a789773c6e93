// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/compare"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/fsm"
)

// errNoDigest says that a member answers and does not know what its record was at an index.
var errNoDigest = errors.New("it does not know its digest there")

// agrees refuses a data folder whose record was found to be another one than the group's, before anybody hears of this member: each start on it
// would end as the last one did, having voted and announced meanwhile.
func agrees(folder *disk.Folder) error {
	if found := folder.Identity().Differs; found != "" {
		return fmt.Errorf("data folder %s: %w", folder.Path(), &compare.DiffersError{Found: found})
	}
	return nil
}

// openComparer has this member compare its record with the others'.
func (m *Member) openComparer() (err error) {
	m.comparer, err = compare.New(compare.Options{
		Record: m.state, Servers: m.servers, Ask: m.digestOf, Log: m.log, Metrics: m.registry,
	})
	return err
}

func (m *Member) servers() (out []compare.Server) {
	for _, p := range m.node.Peers() {
		out = append(out, compare.Server{ID: p.ID, Name: p.Name, Voter: p.Voter, Self: p.Self})
	}
	return out
}

// digestOf asks a server for the digest of its record at an index. Who is at its address may be another instance of the member.
func (m *Member) digestOf(ctx context.Context, s compare.Server, at fsm.Index) (string, error) {
	status, err := m.clients.Client(m.apiOf(s.Name)).Raft.Status(ctx, &fairleadv1.StatusRequest{Local: true, DigestAt: uint64(at)})
	if err != nil {
		return "", err
	}
	for _, itself := range status.GetMembers() {
		if itself.GetServerId() == s.ID && status.GetAnsweredBy() == s.ID && itself.GetDigestAt() == uint64(at) {
			return itself.GetDigest(), nil
		}
	}
	return "", errNoDigest
}
