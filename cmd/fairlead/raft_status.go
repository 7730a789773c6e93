// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// groupStatus is what `fairlead raft status` prints.
type groupStatus struct {
	Group              string         `json:"group"`
	Epoch              uint64         `json:"epoch"`
	Format             uint32         `json:"format"`
	Leader             string         `json:"leader"` // empty: nobody
	Term               uint64         `json:"term"`
	ConfigurationIndex uint64         `json:"configurationIndex"`
	AnsweredBy         string         `json:"answeredBy"`
	Former             bool           `json:"former"` // the one that answers is no member any more
	Voters             uint32         `json:"voters"`
	HealthyVoters      uint32         `json:"healthyVoters"`
	Quorum             uint32         `json:"quorum"`
	Advice             string         `json:"advice"` // empty: nothing is wrong
	Members            []memberStatus `json:"members"`
}

// memberStatus is one server of the configuration and what it last told.
type memberStatus struct {
	peer
	Healthy       bool     `json:"healthy"`
	State         string   `json:"state"`
	Term          uint64   `json:"term"`
	Applied       uint64   `json:"applied"`
	Commit        uint64   `json:"commit"`
	LastContactMS *int64   `json:"lastContactMs"` // null: it never heard from a leader
	Format        uint32   `json:"format"`
	Version       string   `json:"version"`
	Epoch         uint64   `json:"epoch"`
	Digest        string   `json:"digest"`
	Announced     revision `json:"announced"`
	Unreachable   string   `json:"unreachable"` // empty: what stands here it told just now
	Unhealthy     string   `json:"unhealthy"`   // why it is not; empty: it is, or its leader does not tell
	DigestAt      uint64   `json:"digestAt"`
	WritingMS     int64    `json:"writingMs"`
}

// peer is one server of the configuration.
type peer struct {
	Name       string `json:"name"`
	ServerID   string `json:"serverId"`
	Address    string `json:"address"`
	APIAddress string `json:"apiAddress"`
	Suffrage   string `json:"suffrage"`
	Leader     bool   `json:"leader"`
}

func peerOf(m *fairleadv1.Member) peer {
	suffrage := "nonvoter"
	if m.GetSuffrage() == fairleadv1.Suffrage_SUFFRAGE_VOTER {
		suffrage = "voter"
	}
	return peer{
		Name: m.GetName(), ServerID: m.GetServerId(), Address: m.GetAddress(), APIAddress: m.GetApiAddress(),
		Suffrage: suffrage, Leader: m.GetLeader(),
	}
}

func statusOf(s *fairleadv1.StatusResponse) groupStatus {
	g := groupStatus{
		Group: s.GetGroup(), Epoch: s.GetEpoch(), Format: s.GetFormat(), Leader: s.GetLeader(), Term: s.GetTerm(),
		ConfigurationIndex: s.GetConfigurationIndex(), AnsweredBy: s.GetAnsweredBy(),
		Voters: s.GetVoters(), HealthyVoters: s.GetHealthyVoters(), Quorum: s.GetQuorum(), Advice: s.GetAdvice(),
		Members: []memberStatus{}, Former: s.GetFormer(),
	}
	for _, m := range s.GetMembers() {
		g.Members = append(g.Members, memberStatus{
			peer: peerOf(m), Healthy: m.GetHealthy(), State: m.GetState(), Term: m.GetTerm(), Applied: m.GetApplied(),
			Commit: m.GetCommit(), LastContactMS: m.LastContactMs, Format: m.GetFormat(), Version: m.GetVersion(),
			Epoch: m.GetEpoch(), Digest: m.GetDigest(), Announced: revisionOf(m.GetAnnounced()), Unreachable: m.GetUnreachable(),
			Unhealthy: m.GetUnhealthy(), DigestAt: m.GetDigestAt(), WritingMS: m.GetWritingMs(),
		})
	}
	return g
}

// unknown is an error where the one that answers does not know how the group is.
func (g groupStatus) unknown() error {
	if !g.Former || g.Leader != "" {
		return nil
	}
	return fmt.Errorf("raft status: %s answered, which is no member of the group any more and does not know how the others are; ask one of them (--server)", g.AnsweredBy)
}

// group names it, where the one that answers has read the record that says so.
func (g groupStatus) group() string {
	if g.Group == "" && len(g.Members) > 0 {
		return "not known before the record is read"
	}
	return fmt.Sprintf("%s, epoch %d, format %d", orNone(g.Group), g.Epoch, g.Format)
}

// WriteTable writes the group, then a member a line.
func (g groupStatus) WriteTable(w io.Writer) error {
	leader := g.Leader
	if leader == "" {
		leader = "nobody"
	}
	err := output.WriteFields(w,
		[2]string{"group", g.group()},
		[2]string{"leader", fmt.Sprintf("%s, term %d", leader, g.Term)},
		[2]string{"voters", fmt.Sprintf("%d of %d healthy, quorum is %d", g.HealthyVoters, g.Voters, g.Quorum)},
		[2]string{"advice", g.Advice},
	)
	if err != nil || len(g.Members) == 0 {
		return err
	}
	var rows [][]string
	for _, m := range g.Members {
		rows = append(rows, m.row())
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return output.WriteRows(w, []string{"NAME", "STATE", "SUFFRAGE", "HEALTHY", "APPLIED", "COMMIT", "CONTACT", "FORMAT", "VERSION", "API", "NOTE"}, rows)
}

func (m memberStatus) row() []string {
	contact := ""
	if m.LastContactMS != nil {
		contact = (time.Duration(*m.LastContactMS) * time.Millisecond).String()
	}
	return []string{
		m.Name, m.State, m.Suffrage, yesNo(m.Healthy), number(m.Applied), number(m.Commit), contact,
		number(uint64(m.Format)), m.Version, m.APIAddress, m.note(),
	}
}

// note says what is wrong with a member.
func (m memberStatus) note() string {
	if m.Unhealthy == "" || m.Unreachable == "" {
		return m.Unhealthy + m.Unreachable
	}
	return m.Unhealthy + "; " + m.Unreachable
}

// number leaves out a number that is not known.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

func newRaftStatus(c *cli) *cobra.Command {
	var local bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the group and its members are doing; works without quorum, too",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := ask(cmd.Context(), c, "raft status", lookWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.StatusResponse, error) {
				return client.Raft.Status(ctx, &fairleadv1.StatusRequest{Local: local})
			})
			if err != nil {
				return err
			}
			g := statusOf(status)
			return cmp.Or(c.print(g), g.unknown())
		},
	}
	cmd.Flags().BoolVar(&local, "local", false, "only what the answering member knows by itself")
	return cmd
}

// peerList is what `fairlead raft peers` prints.
type peerList struct {
	Leader             string `json:"leader"`
	ConfigurationIndex uint64 `json:"configurationIndex"`
	Members            []peer `json:"members"`
}

// WriteTable writes a server a line.
func (l peerList) WriteTable(w io.Writer) error {
	var rows [][]string
	for _, p := range l.Members {
		rows = append(rows, []string{p.Name, p.ServerID, p.Suffrage, yesNo(p.Leader), p.Address, p.APIAddress})
	}
	return output.WriteRows(w, []string{"NAME", "SERVER-ID", "SUFFRAGE", "LEADER", "RAFT", "API"}, rows)
}

func newRaftPeers(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "peers",
		Short: "List the servers of the Raft configuration",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			peers, err := ask(cmd.Context(), c, "raft peers", lookWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.PeersResponse, error) {
				return client.Raft.Peers(ctx, &fairleadv1.PeersRequest{})
			})
			if err != nil {
				return err
			}
			list := peerList{Leader: peers.GetLeader(), ConfigurationIndex: peers.GetConfigurationIndex(), Members: []peer{}}
			for _, m := range peers.GetMembers() {
				list.Members = append(list.Members, peerOf(m))
			}
			return c.print(list)
		},
	}
}
