// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

// answers hands on what comes down a stream of heartbeats, until the stream ends.
func answers(t *testing.T, stream *connect.BidiStreamForClientSimple[fairleadv1.HeartbeatRequest, fairleadv1.HeartbeatResponse]) (<-chan *fairleadv1.HeartbeatResponse, <-chan error) {
	t.Helper()
	out, end := make(chan *fairleadv1.HeartbeatResponse, 64), make(chan error, 1)
	go func() {
		for {
			answer, err := stream.Receive()
			if err != nil {
				end <- err
				return
			}
			out <- answer
		}
	}()
	return out, end
}

// The first heartbeat is answered and those that ask for it are; else only news is worth an answer.
func TestHeartbeatsAreAnsweredWhereThatTellsSomething(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	s := newService(t, g)
	runs(t, s)
	stream, err := client(t, s).Heartbeat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	beat := func(answer bool) {
		t.Helper()
		before := time.Now()
		if err := stream.Send(&fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b1", Answer: answer}); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "the member hears it", func() bool {
			list, _ := s.Beats()
			return len(list) == 1 && list[0].Node == "n1" && list[0].Boot == "b1" && list[0].At.After(before)
		})
	}
	heard, ended := answers(t, stream)
	beat(false)
	if first := <-heard; !first.GetInQuorum() || first.GetApplied().GetIndex() == 0 {
		t.Fatalf("first answer %v", first)
	}
	beat(false)
	beat(true)
	<-heard // one of the two: that nothing else came shows below
	g.Change(func(k *grouptest.Knobs) { k.Alone = time.Hour })
	testkit.Until(t, "the member knows that it is alone", func() bool { return !s.standing.good() })
	beat(false)
	if news := <-heard; news.GetInQuorum() {
		t.Fatal("an answer that nobody asked for, or one that hides that the member is alone")
	}
	beat(false)
	if err := stream.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) || len(heard) != 0 {
		t.Errorf("%v, and %d answers that nobody asked for", err, len(heard))
	}
}

// A member that ends does not wait until agents stop to beat.
func TestStreamsOfHeartbeatsEndWithTheMember(t *testing.T) {
	t.Parallel()
	s := newService(t, grouptest.NewGroup(t))
	runs(t, s)
	w := grouptest.NewWorld(t)
	api := w.Serve(t, "m1", func(opts ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(s, opts...)
	})
	stream, err := w.Client(t, pki.Agent, "n1", api.Address).Agent.Heartbeat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	heard, ended := answers(t, stream)
	if err := stream.Send(&fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b1"}); err != nil {
		t.Fatal(err)
	}
	<-heard
	api.Stop()
	if err := <-ended; !errors.Is(err, admin.Stopped) {
		t.Errorf("ended with %v", err)
	}
}

// Heartbeats without a node or a boot end the stream.
func TestHeartbeatsNameNodeAndBoot(t *testing.T) {
	t.Parallel()
	s := newService(t, grouptest.NewGroup(t))
	runs(t, s)
	_, err := grouptest.Beat(context.Background(), client(t, s), &fairleadv1.HeartbeatRequest{Node: "n1"})
	if !errors.Is(err, admin.Invalid) {
		t.Errorf("without a boot: %v", err)
	}
}

// A handler that has returned must send nothing: net/http panics then, and nobody catches that. Here the stream ends while a
// heartbeat is being taken in.
func TestNothingIsSentOnAStreamOfHeartbeatsThatHasEnded(t *testing.T) {
	t.Parallel()
	s := newService(t, grouptest.NewGroup(t))
	entered, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	now := s.o.Now
	s.o.Now = func() time.Time {
		first.Do(func() {
			close(entered)
			<-release
		})
		return now()
	}
	runs(t, s)
	c := client(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := c.Heartbeat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	beat := &fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b1", Answer: true}
	if err := stream.Send(beat); err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel()
	time.Sleep(50 * time.Millisecond) // so that the member hears of the end; if it does not yet, nothing fails
	close(release)
	again, err := c.Heartbeat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Send(beat); err != nil {
		t.Fatal(err)
	}
	if answer, err := again.Receive(); err != nil || !answer.GetInQuorum() {
		t.Fatalf("the member does not live on: %v, %v", answer, err)
	}
}
