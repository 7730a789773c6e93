// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// Speaker is the node's own BGP side. Its methods may be called from several goroutines.
type Speaker interface {
	// Have is the revision of what it was told last; zero if it was told nothing, or lost it.
	Have() fsm.Revision
	// Tell says what is to be announced from now on. Errors: it cannot be read.
	Tell(m *fairleadv1.AnnouncementsResponse) error
	// Marks tells how far that came, and News is ready to be received from after it changed.
	Marks() SpeakerMarks
	News() <-chan struct{}
	// Sessions gives the states of the BGP sessions, by neighbour, and a number that is another one when they are. No number
	// is 0.
	Sessions() (states map[string]string, number uint64)
}

// SpeakerMarks are up to where a speaker's paths are on the wire, and up to where no switch holds more than them; and which of its sessions count
// as open, in order of peers, once that is known.
type SpeakerMarks struct {
	Announced, Withdrawn fsm.Revision
	Sessions             fsm.Sessions
}

// Equal tells whether m and o say the same.
func (m SpeakerMarks) Equal(o SpeakerMarks) bool {
	return m.Announced == o.Announced && m.Withdrawn == o.Withdrawn && m.Sessions.Equal(o.Sessions)
}

// openSessions are told once they are known.
func (m SpeakerMarks) openSessions() *fairleadv1.OpenSessions {
	if !m.Sessions.Told {
		return nil
	}
	out := &fairleadv1.OpenSessions{}
	for _, r := range m.Sessions.Open {
		out.Sessions = append(out.Sessions, &fairleadv1.OpenSession{Neighbour: string(r.Peer), Ipv4: r.IPv4, Ipv6: r.IPv6})
	}
	return out
}

// Retirement is what a node owes that announced itself once, and does so no more.
type Retirement struct {
	// After is how long switches may keep what it announced, counted from when a member said that the group waits for it.
	After time.Duration
	// Done is called once the group knows.
	Done func()
}

// announce has the speaker told by the member that is followed, until ctx ends.
func (a *Agent) announce(ctx context.Context) {
	if a.o.Speaker == nil {
		return
	}
	retry := a.o.Tuning.backoff()
	retry.max = min(retry.max, a.o.Tuning.Silence/3) // speakers step back when nobody tells them anything
	for ctx.Err() == nil {
		told, err := a.announceBy(ctx)
		if told {
			retry.reset()
		}
		if ctx.Err() == nil && !errors.Is(err, errNobody) {
			a.metrics.failed("announce")
			a.log.Info("nobody tells what to announce", "err", err)
		}
		sleep(ctx, retry.pause())
	}
}

// announceBy has the speaker told by one member for as long as it is followed. It tells whether it was told anything.
func (a *Agent) announceBy(ctx context.Context) (told bool, err error) {
	to := a.following()
	if to == nil {
		return false, errNobody
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(to.ctx, cancel)()
	stream, err := to.conn().Announcements(ctx, &fairleadv1.AnnouncementsRequest{
		Node: a.o.Node, Boot: a.o.Boot, Have: desired.RevisionMessage(a.o.Speaker.Have()),
	})
	if err != nil {
		return false, err
	}
	defer func() {
		_ = stream.Close() // it ended, or is no longer wanted
		if told {
			a.note(func(s *Status) { s.Telling, s.Untold = false, time.Now() })
		}
	}()
	for stream.Receive() {
		if err := a.o.Speaker.Tell(stream.Msg()); err != nil {
			return told, err
		}
		told = true
		a.note(func(s *Status) { s.Telling, s.Untold = true, time.Time{} })
	}
	return told, stream.Err()
}

// Silence is for how long the speaker cannot be sure to announce what the group wants: since no member in touch with a quorum
// answered, or none told it anything. The second result is false before anybody did.
func (a *Agent) Silence() (time.Duration, bool) {
	s := a.Status()
	heard := a.fleet.inTouch()
	if heard.IsZero() || !s.Telling && s.Untold.IsZero() {
		return 0, false
	}
	silence := time.Since(heard)
	if !s.Telling {
		silence = max(silence, time.Since(s.Untold))
	}
	return silence, true
}

// inTouch is when a member that is in touch with a quorum last answered; zero if none ever did.
func (f *fleet) inTouch() (last time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		p.mu.Lock()
		if p.touched.After(last) {
			last = p.touched
		}
		p.mu.Unlock()
	}
	return last
}

// reportSpeaker tells the member that is followed how far the speaker came, until ctx ends.
func (a *Agent) reportSpeaker(ctx context.Context) {
	if a.o.Speaker == nil {
		a.retire(ctx)
		return
	}
	retry := a.o.Tuning.backoff()
	var told SpeakerMarks
	for ctx.Err() == nil {
		marks := a.o.Speaker.Marks()
		if marks.Equal(told) {
			select {
			case <-a.o.Speaker.News():
			case <-ctx.Done():
			}
			continue
		}
		if err := a.tellMarks(ctx, true, marks); err != nil {
			sleep(ctx, retry.pause())
			continue
		}
		told = marks
		retry.reset()
	}
}

// retire says that the node speaks no more, if the group has it that it does, and once no switch can hold anything of it.
func (a *Agent) retire(ctx context.Context) {
	if a.o.Retirement == nil {
		return
	}
	select {
	case <-a.spoke:
	case <-ctx.Done():
		return
	}
	a.log.Info("this node announced itself once: the group is told that it does no more", "in", a.o.Retirement.After)
	if !sleep(ctx, a.o.Retirement.After) {
		return
	}
	retry := a.o.Tuning.backoff()
	for a.tellMarks(ctx, false, SpeakerMarks{}) != nil {
		if !sleep(ctx, retry.pause()) {
			return
		}
	}
	a.o.Retirement.Done()
}

func (a *Agent) tellMarks(ctx context.Context, speaks bool, m SpeakerMarks) error {
	to := a.following()
	if to == nil {
		return errNobody
	}
	ctx, cancel := context.WithTimeout(ctx, a.o.Tuning.FirstStep)
	defer cancel()
	defer context.AfterFunc(to.ctx, cancel)()
	_, err := to.conn().ReportSpeaker(ctx, &fairleadv1.ReportSpeakerRequest{
		Node: a.o.Node, Boot: a.o.Boot, Speaks: speaks,
		Announced: desired.RevisionMessage(m.Announced), Withdrawn: desired.RevisionMessage(m.Withdrawn),
		Sessions: m.openSessions(),
	})
	if err != nil && ctx.Err() == nil {
		a.metrics.failed("report")
		a.log.Debug("marks of the speaker not taken", "err", err)
	}
	return err
}

// sessions gives the states of BGP sessions for a heartbeat, nil if they are those of a number.
func (a *Agent) sessions(told uint64) (*fairleadv1.SpeakerSessions, uint64) {
	if a.o.Speaker == nil {
		return nil, told
	}
	states, number := a.o.Speaker.Sessions()
	if number == told {
		return nil, told
	}
	m := &fairleadv1.SpeakerSessions{}
	for neighbour, state := range states {
		m.Sessions = append(m.Sessions, &fairleadv1.SpeakerSession{Neighbour: neighbour, State: state})
	}
	return m, number
}
