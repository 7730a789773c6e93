// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/gobgp"
)

// Command is the first argument of the program as a child.
const Command = "bgp-speaker"

// IsChild tells whether this process was started as a child. A program that has a Speaker calls Main then, before anything else.
func IsChild() bool { return len(os.Args) == 2 && os.Args[1] == Command }

// connectionFD is where the child finds its connection with the parent.
const connectionFD = 3

// leaveWithin is how long a child may take to leave its sessions when its parent is gone.
const leaveWithin = 5 * time.Second

// Main is the child's program: it speaks until its parent says that it is over, or is gone. It returns the exit status.
//
// The parent ends it: signals that a terminal, or a supervisor, sends to all processes of a service are the parent's to heed.
func Main() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	file := os.NewFile(connectionFD, "parent")
	conn, err := net.FileConn(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: no connection with a parent (%v): members and agents run this command themselves\n", Command, err)
		return 2
	}
	_ = file.Close() // conn has a duplicate
	level := slog.LevelInfo
	if os.Getenv(debugVariable) != "" {
		level = slog.LevelDebug
	}
	if err := Serve(conn, slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Command, err)
		return 1
	}
	return 0
}

// debugVariable of the environment has a child log what its parent's log takes down to debug.
const debugVariable = "FAIRLEAD_BGP_SPEAKER_DEBUG"

// Serve speaks as the other end of a connection says. It returns once that has said that it is over, or is gone: sessions are left
// such that switches keep the paths then. Errors: those of the connection.
func Serve(conn net.Conn, log *slog.Logger) error {
	s := &server{channel: newChannel(conn), log: log}
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
		if errors.Is(err, gobgp.ErrStopped) {
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
	log     *slog.Logger
	speaker *gobgp.Speaker
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
	return errors.Join(s.SetReadDeadline(until), s.receive(r))
}

// do does what is asked for. It takes as long as that takes: who asks ends the child if that is too long.
func (s *server) do(r request, a *answer) (err error) {
	ctx := context.Background()
	switch r.Do {
	case doNothing:
	case doStart:
		s.silence = r.Start.Silence
		s.speaker, err = gobgp.New(gobgp.Config{
			ASN: r.Start.ASN, RouterID: r.Start.RouterID, ListenPort: r.Start.ListenPort, ListenAddrs: r.Start.ListenAddrs,
			Management: r.Start.Management, Logger: s.log,
		})
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
