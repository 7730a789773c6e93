// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// Served is the speaker in a child.
type Served interface {
	bgp.Speaker
	// Peers tells how things stand with every peer, by address.
	Peers(ctx context.Context) ([]bgp.PeerStatus, error)
	// Detach leaves all sessions such that switches keep the paths for a while, and Drain for good. The speaker is of no use then.
	Detach(ctx context.Context) error
	Drain(ctx context.Context) error
}

// leaveWithin is how long a child may take to leave its sessions when its parent is gone.
const leaveWithin = 5 * time.Second

// Serve speaks as the other end of a connection says, by a speaker that open makes; limit is told of how many bytes the process is to make do. It returns once that has said that it is over, or is gone: sessions are left
// such that switches keep the paths then. Errors: those of the connection.
func Serve(conn net.Conn, open func(Settings) (Served, error), limit func(bytes uint64)) error {
	s := &server{channel: newChannel(conn), open: open, limit: limit}
	defer conn.Close()
	return errors.Join(s.run(), s.leave())
}

// leave leaves the sessions, if that was not done yet. It does not wait for longer than leaveWithin: the end of the process ends them too.
func (s *server) leave() error {
	if s.speaker == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	left := make(chan error, 1)
	go func() { left <- s.speaker.Detach(ctx) }()
	select {
	case err := <-left:
		if errors.Is(err, bgp.ErrStopped) {
			return nil
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("leave sessions: %w", ctx.Err())
	}
}

// server is the child's end.
type server struct {
	*channel
	open    func(Settings) (Served, error)
	limit   func(bytes uint64)
	speaker Served        // nil before it is open
	silence time.Duration // that the parent may keep; 0: any
	paths   bgp.Paths     // that were announced last
}

func (s *server) run() error {
	for {
		var r request
		if err := s.hear(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("from the parent: %w", err)
		}
		var a answer
		a.Failures = failuresOf(s.do(r, &a))
		if err := s.send(&a); err != nil {
			return fmt.Errorf("to the parent: %w", err)
		}
		if r.Do == doDetach || r.Do == doDrain {
			return nil
		}
	}
}

// hear waits for the next request. A parent that stands still decides nothing any more: to go on announcing what it wanted last would keep
// paths at switches that the group believes to be gone, as nobody would who stands still with it.
func (s *server) hear(r *request) error {
	until := time.Time{}
	if s.silence > 0 {
		until = time.Now().Add(s.silence)
	}
	return errors.Join(s.conn.SetReadDeadline(until), s.receive(r))
}

// do does what is asked for. It takes as long as that takes: who asks ends the child if that is too long.
func (s *server) do(r request, a *answer) (err error) {
	ctx := context.Background()
	if r.Memory > 0 {
		s.limit(r.Memory)
	}
	switch r.Do {
	case doNothing:
	case doStart:
		s.silence = r.Start.Silence
		var speaker Served
		if speaker, err = s.open(r.Start); err == nil {
			s.speaker = speaker
		}
	case doAnnounce:
		desired := r.Announce.desired(s.paths)
		s.paths = desired.Paths
		err = s.speaker.Apply(ctx, desired)
	case doWritten:
		a.Written, err = s.speaker.Written(ctx)
	case doLinks:
		a.Links, err = s.speaker.Links(ctx)
	case doMend:
		err = s.speaker.Mend(ctx, r.Longer)
	case doPeers:
		a.Peers, err = s.speaker.Peers(ctx)
	case doDetach:
		err = s.speaker.Detach(ctx)
	case doDrain:
		err = s.speaker.Drain(ctx)
	default:
		err = fmt.Errorf("request %d: not known", r.Do)
	}
	return err
}
