// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// The library sends to an address and does not say whom it means. A member that lost its folder comes back at the
// address of its former instance: without a name on the message it would be taken for that instance, and its empty log
// would count as a voter's. Therefore every request names its addressee behind the sender's address, and whoever it is
// not for refuses it. The name travels in the header that all requests have, so that it works with every transport.

// nameMark ends the sender's address. It cannot be part of one.
const nameMark = 0

// header finds the header of a request.
func header(command any) *raft.RPCHeader {
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		return &c.RPCHeader
	case *raft.RequestVoteRequest:
		return &c.RPCHeader
	case *raft.RequestPreVoteRequest:
		return &c.RPCHeader
	case *raft.InstallSnapshotRequest:
		return &c.RPCHeader
	case *raft.TimeoutNowRequest:
		return &c.RPCHeader
	default:
		return nil
	}
}

// addressed gives a copy of a request with its addressee. The library uses one request for several peers.
func addressed[R any](request *R, to raft.ServerID) *R {
	c := *request
	h := header(any(&c))
	addr := make([]byte, 0, len(h.Addr)+1+len(to))
	h.Addr = append(append(append(addr, h.Addr...), nameMark), to...)
	return &c
}

// readAddressee takes the addressee off a request again and refuses one that is for another server.
func readAddressee(command any, self raft.ServerID) error {
	h := header(command)
	if h == nil {
		return nil // the library refuses what it does not know
	}
	addr, to, ok := bytes.Cut(h.Addr, []byte{nameMark})
	if !ok || raft.ServerID(to) != self {
		return fmt.Errorf("this is server %s, the message is for %q", self, to)
	}
	h.Addr = addr
	return nil
}

// enfranchise has the library treat a candidate like one that has a vote, where this server's newest configuration gives that one none.
//
// The library refuses its own vote to such a candidate (v1.7.3, requestVote and requestPreVote), so that a server that was removed and does not
// know it disturbs nobody. Raft asks for no such thing: who was away has a configuration of before, and what logs hold decides. Where those
// who got their votes meanwhile hold the most, a majority of the voters would be there and none of them could be elected. Who was removed gets
// no further all the same: those who hold its removal hold more than it does, and they are a majority; before it disturbs anybody they are
// asked (pre-vote).
//
// The library looks at the name for nothing else. A vote it gives to an address, which another instance of the same member may have had: this
// one's vote is given to its name too, so that no two get it in one term.
func (o *observer) enfranchise(command any) {
	library := o.library.Load()
	if library == nil {
		return
	}
	h := header(command)
	switch command.(type) {
	case *raft.RequestVoteRequest:
		if voter := otherVoter(library, raft.ServerID(h.ID)); voter != "" {
			h.Addr = append(append(h.Addr[:len(h.Addr):len(h.Addr)], nameMark), h.ID...)
			h.ID = []byte(voter)
		}
	case *raft.RequestPreVoteRequest:
		if voter := otherVoter(library, raft.ServerID(h.ID)); voter != "" {
			h.ID = []byte(voter)
		}
	}
}

// otherVoter gives a server that has a vote by the newest configuration of a library, if id has none.
func otherVoter(library *raft.Raft, id raft.ServerID) (voter raft.ServerID) {
	for _, s := range library.GetConfiguration().Configuration().Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == id:
			return ""
		default:
			voter = s.ID
		}
	}
	return voter
}

// refuse answers a request that the library does not get to see.
func refuse(rpc raft.RPC, err error) { rpc.RespChan <- refusal(rpc.Command, err) }

// refusal is an error with the type of answer that the transports expect beside it.
func refusal(command any, err error) raft.RPCResponse {
	var empty any
	switch command.(type) {
	case *raft.AppendEntriesRequest:
		empty = &raft.AppendEntriesResponse{}
	case *raft.RequestVoteRequest:
		empty = &raft.RequestVoteResponse{}
	case *raft.RequestPreVoteRequest:
		empty = &raft.RequestPreVoteResponse{}
	case *raft.InstallSnapshotRequest:
		empty = &raft.InstallSnapshotResponse{}
	case *raft.TimeoutNowRequest:
		empty = &raft.TimeoutNowResponse{}
	}
	return raft.RPCResponse{Response: empty, Error: err}
}

// RequestVote asks for a vote.
func (o *observer) RequestVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest,
	resp *raft.RequestVoteResponse,
) error {
	asked := addressed(args, id)
	o.raise(&asked.LastLogTerm, &asked.LastLogIndex)
	err := o.vote(id, store.Position{Term: asked.LastLogTerm, Index: asked.LastLogIndex}, func() error {
		return o.Transport.RequestVote(id, to, asked, resp)
	}, &resp.Granted)
	if err == nil && resp.Granted { // the right folder, which may be put in place yet, knows nothing of a vote that does not count
		o.memory.note(id, Known{Term: args.Term, Voted: args.Term})
	}
	if err == nil {
		o.echo.keep(id, resp)
	}
	return err
}

// RequestPreVote asks whether a vote would be given, unless this member has no record to lead with.
func (o *observer) RequestPreVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest,
	resp *raft.RequestPreVoteResponse,
) error {
	if o.reads() {
		return errLoading
	}
	asked := addressed(args, id)
	o.raise(&asked.LastLogTerm, &asked.LastLogIndex)
	err := o.vote(id, store.Position{Term: asked.LastLogTerm, Index: asked.LastLogIndex}, func() error {
		return o.Transport.RequestPreVote(id, to, asked, resp)
	}, &resp.Granted)
	if err == nil {
		o.echo.keep(id, resp)
	}
	return err
}

// InstallSnapshot sends a whole state, once the peer is within reach.
func (o *observer) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	if err := o.reach.await(id); err != nil {
		return err
	}
	if err := o.closed(); err != nil {
		return err
	}
	if err := o.trusts(id); err != nil {
		return err
	}
	counted, end := o.sending.of(data)
	defer end()
	message := addressed(args, id)
	message.Leader = withCommit(o.echo.back(id), o.committedIn(args.Term))
	err := o.Transport.InstallSnapshot(id, to, message, resp, counted)
	if err == nil && resp.Success {
		o.memory.note(id, Known{Term: resp.Term, Last: store.Position{Term: args.LastLogTerm, Index: args.LastLogIndex}, told: resp.Term})
	}
	return err
}

// TimeoutNow hands the leadership over.
func (o *observer) TimeoutNow(id raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest,
	resp *raft.TimeoutNowResponse,
) error {
	if err := o.closed(); err != nil {
		return err
	}
	return o.Transport.TimeoutNow(id, to, addressed(args, id), resp)
}

// AppendEntriesPipeline carries entries to followers that are up to date, and notes the answers.
func (o *observer) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := o.Transport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return newPipeline(p, id, o), nil
}
