// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// owner is the member around an announcer: its record, its contact, its disk and its speaker, all simple.
type owner struct {
	mu      sync.Mutex
	routes  Routes
	changed chan struct{}
	heard   time.Time // zero: never
	commit  uint64

	applies  []Desired
	revision map[string][]Revision
	queued   bool // applied and not written yet
	failing  bool
	refuses  error // what of it all was left out
	slow     bool  // nothing leaves

	disk      *Routes
	diskFails bool
	diskHangs time.Duration // that the next save takes
	announced []Revision
	lost      bool // what is written does not arrive
	withdrawn Revision
	mends     []time.Duration
	turn      func() int // of an announcer that is about to run; nil for none
	fault     string
}

func newOwner() *owner {
	return &owner{changed: make(chan struct{}, 1), revision: map[string][]Revision{}}
}

// content is what tells two sets of routes apart in these tests.
func content(paths Paths) string { return paths.String() }

// set makes the record ask for n paths, at the index.
func (o *owner) set(index uint64, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := Routes{Revision: Revision{1, index}}
	var paths []Path
	for i := range n {
		paths = append(paths, Path{
			Prefix:  netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 32),
			NextHop: netip.MustParseAddr("198.51.100.1"),
		})
	}
	r.Paths = NewPaths(paths...)
	o.routes = r
	o.revision[content(r.Paths)] = append(o.revision[content(r.Paths)], r.Revision)
	signal(o.changed)
}

func (o *owner) Routes() Routes           { o.mu.Lock(); defer o.mu.Unlock(); return o.routes }
func (o *owner) Changed() <-chan struct{} { return o.changed }

func (o *owner) hear(commit uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard, o.commit = time.Now(), commit
}

func (o *owner) Contact() Contact {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := Contact{Silence: Never, Commit: o.commit, Applied: o.routes.Revision.Index}
	if !o.heard.IsZero() {
		c.Silence = time.Since(o.heard)
	}
	return c
}

func (o *owner) Apply(_ context.Context, d Desired) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing {
		return errors.New("port in use")
	}
	o.applies = append(o.applies, d)
	o.queued = true
	return o.refuses
}

func (o *owner) Written(context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.slow {
		o.queued = false
	}
	return !o.queued, nil
}

func (o *owner) Load() (*Routes, error) { o.mu.Lock(); defer o.mu.Unlock(); return o.disk, nil }

func (o *owner) Save(r Routes) error {
	o.mu.Lock()
	hangs := o.diskHangs
	o.diskHangs = 0
	o.mu.Unlock()
	time.Sleep(hangs)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.diskFails {
		return errors.New("no space left on device")
	}
	if o.disk != nil && r.Revision.Compare(o.disk.Revision) < 0 {
		o.fault = fmt.Sprintf("saved %s over %s", r.Revision, o.disk.Revision)
	}
	o.disk = &r
	return nil
}

// report checks what a reported revision promises: it is on the wire, kept, and never runs back.
func (o *owner) report(r Revision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.announced); n > 0 && r.Compare(o.announced[n-1]) <= 0 {
		o.fault = fmt.Sprintf("reported %s after %s", r, o.announced[n-1])
	}
	if len(o.applies) == 0 || o.disk == nil {
		o.fault = fmt.Sprintf("reported %s before anything was announced", r)
	} else if newest := o.newest(content(o.applies[len(o.applies)-1].Paths)); newest.Compare(r) < 0 {
		o.fault = fmt.Sprintf("reported %s, announced is %s", r, newest)
	} else if newest := o.newest(content(o.disk.Paths)); newest.Compare(r) < 0 {
		o.fault = fmt.Sprintf("reported %s, kept is %s", r, newest)
	}
	o.announced = append(o.announced, r)
}

func (o *owner) newest(content string) Revision {
	r := o.revision[content]
	if len(r) == 0 {
		return Revision{}
	}
	return r[len(r)-1]
}

func (o *owner) last() Desired {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.applies) == 0 {
		return Desired{}
	}
	return o.applies[len(o.applies)-1]
}

func (o *owner) count() int { o.mu.Lock(); defer o.mu.Unlock(); return len(o.applies) }

func (o *owner) reported() Revision {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.announced) == 0 {
		return Revision{}
	}
	return o.announced[len(o.announced)-1]
}

// run runs an announcer in a bubble of virtual time until the returned function is called.
func (o *owner) run() (a *Announcer, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	a = NewAnnouncer(AnnouncerConfig{Source: o, Group: o, Speaker: o, Store: o, Announced: o.report, Withdrawn: o.withdraw, Turn: o.turn})
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	return a, func() { cancel(); <-done }
}

// keepContact hears of the leader every 300 ms for d.
func (o *owner) keepContact(d time.Duration, commit uint64) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		o.hear(commit)
		time.Sleep(300 * time.Millisecond)
	}
}

func story(t *testing.T, f func(t *testing.T, o *owner)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		f(t, o)
		if o.fault != "" {
			t.Error(o.fault)
		}
	})
}

func TestNothingIsAnnouncedBeforeTheRecordIsComplete(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		_, stop := o.run()
		defer stop()
		time.Sleep(time.Hour)
		if o.count() != 0 {
			t.Fatalf("announced %v without a leader", o.last())
		}
		o.hear(30)
		for i := uint64(6); i <= 30; i++ {
			if o.count() != 0 {
				t.Fatalf("announced at index %d of 30", i)
			}
			o.set(i, int(i))
			o.keepContact(time.Second, 30)
		}
		if d := o.last(); d.Paths.Len() != 30 || d.Demoted {
			t.Errorf("announced %d paths, demoted %t", d.Paths.Len(), d.Demoted)
		}
		if o.reported() != (Revision{1, 30}) {
			t.Errorf("reported %s", o.reported())
		}
	})
}

func TestAMemberAloneAnnouncesWhatItAnnouncedLast(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(100, 7)
		kept := o.routes
		o.disk = &kept
		o.set(40, 3) // its snapshot
		_, stop := o.run()
		defer stop()
		time.Sleep(9 * time.Second)
		if o.count() != 0 {
			t.Fatal("announced within the restart window")
		}
		time.Sleep(2 * time.Second)
		if d := o.last(); d.Paths.Len() != 7 || !d.Demoted {
			t.Fatalf("announced %d paths, demoted %t", d.Paths.Len(), d.Demoted)
		}
		// The group returns: what comes on the way to what was announced is not announced.
		o.set(60, 4)
		o.keepContact(2*time.Second, 120)
		if d := o.last(); d.Paths.Len() != 7 || !d.Demoted {
			t.Errorf("announced %d paths while catching up, demoted %t", d.Paths.Len(), d.Demoted)
		}
		o.set(120, 9)
		o.keepContact(3*time.Second, 120)
		if d := o.last(); d.Paths.Len() != 9 || d.Demoted || o.reported() != (Revision{1, 120}) {
			t.Errorf("announced %d paths, demoted %t, reported %s", d.Paths.Len(), d.Demoted, o.reported())
		}
	})
}

func TestAnElectionCausesNoUpdate(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		_, stop := o.run()
		defer stop()
		o.keepContact(3*time.Second, 5)
		n := o.count()
		for i := range 3 {
			time.Sleep(2500 * time.Millisecond)     // no leader
			o.set(uint64(6+i), 5)                   // the entry of the new term changes no route
			o.keepContact(2*time.Second, uint64(5)) // which knows less at first
		}
		if got := o.count(); got != n {
			t.Errorf("the speaker was told %d times", got-n)
		}
		if o.reported() != (Revision{1, 8}) {
			t.Errorf("reported %s", o.reported())
		}
	})
}

func TestAMemberCutOffStepsAsideAndReturns(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		a, stop := o.run()
		defer stop()
		o.keepContact(3*time.Second, 5)
		time.Sleep(2900*time.Millisecond - o.Contact().Silence)
		if o.last().Demoted {
			t.Fatalf("demoted after %s of silence", o.Contact().Silence)
		}
		time.Sleep(300 * time.Millisecond)
		if !o.last().Demoted || !a.Status().Demoted {
			t.Fatalf("not demoted after %s of silence", o.Contact().Silence)
		}
		o.keepContact(900*time.Millisecond, 6)
		o.set(6, 6)
		o.keepContact(900*time.Millisecond, 6)
		if d := o.last(); !d.Demoted || d.Paths.Len() != 6 {
			t.Errorf("demoted %t with %d paths before contact held for a second", d.Demoted, d.Paths.Len())
		}
		o.keepContact(400*time.Millisecond, 6)
		if o.last().Demoted {
			t.Errorf("still demoted: %s", a.Status().Reason)
		}
	})
}

// A record never runs back; a source that does shall not take the speaker along, not even where it must be told anew.
func TestWhatIsAnnouncedNeverRunsBack(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		_, stop := o.run()
		defer stop()
		o.keepContact(2*time.Second, 5)
		o.set(4, 4)
		time.Sleep(time.Minute)
		if d := o.last(); d.Paths.Len() != 5 || !d.Demoted {
			t.Errorf("announced %d paths, demoted %t", d.Paths.Len(), d.Demoted)
		}
	})
}

// A hanging disk or switch keeps the report back, and nothing else.
func TestOnlyWhatIsWrittenAndKeptIsReported(t *testing.T) {
	for _, broken := range []string{"disk", "switch"} {
		t.Run(broken, func(t *testing.T) {
			story(t, func(t *testing.T, o *owner) {
				o.set(5, 5)
				a, stop := o.run()
				defer stop()
				o.keepContact(2*time.Second, 5)
				o.mu.Lock()
				o.diskFails, o.slow = broken == "disk", broken == "switch"
				o.mu.Unlock()
				o.set(6, 6)
				o.keepContact(5*time.Second, 6)
				if o.last().Paths.Len() != 6 || o.reported() != (Revision{1, 5}) {
					t.Errorf("announced %d paths, reported %s", o.last().Paths.Len(), o.reported())
				}
				if (a.Status().Err != nil) != (broken == "disk") {
					t.Errorf("error is %v", a.Status().Err)
				}
				o.mu.Lock()
				o.diskFails, o.slow = false, false
				o.mu.Unlock()
				o.keepContact(2*time.Second, 6)
				if o.reported() != (Revision{1, 6}) {
					t.Errorf("reported %s once it worked again", o.reported())
				}
			})
		})
	}
}

func TestWhatIsKeptIsTheNewestAlsoWhenItWasKeptBefore(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		_, stop := o.run()
		defer stop()
		o.keepContact(2*time.Second, 5)
		o.mu.Lock()
		o.diskFails = true
		o.mu.Unlock()
		o.set(6, 6)
		o.keepContact(2*time.Second, 6)
		o.set(7, 5)
		o.keepContact(2*time.Second, 7)
		o.mu.Lock()
		o.diskFails = false
		o.mu.Unlock()
		o.keepContact(3*time.Second, 7)
		if o.disk.Paths.Len() != 5 || o.reported() != (Revision{1, 7}) {
			t.Errorf("kept %d paths, reported %s", o.disk.Paths.Len(), o.reported())
		}
	})
}

func TestADiskThatHungOnceDelaysReportsNoMore(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		_, stop := o.run()
		defer stop()
		o.keepContact(2*time.Second, 5)
		o.mu.Lock()
		o.diskHangs = 15 * time.Second
		o.mu.Unlock()
		o.set(6, 6)
		o.keepContact(14*time.Second, 6)
		if o.reported() != (Revision{1, 5}) {
			t.Fatalf("reported %s, which is not kept", o.reported())
		}
		o.keepContact(2*time.Second, 6)
		if o.reported() != (Revision{1, 6}) {
			t.Errorf("reported %s once the disk was back", o.reported())
		}
		o.set(7, 4) // two paths are withdrawn, and whoever waits for that waits for the report
		o.keepContact(7*time.Second, 7)
		if o.reported() != (Revision{1, 7}) {
			t.Errorf("reported %s 7 s after the change", o.reported())
		}
	})
}

func TestAFailedAnnouncementIsRepeated(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.failing = true
		o.set(5, 5)
		a, stop := o.run()
		defer stop()
		o.keepContact(10*time.Second, 5)
		if a.Status().Err == nil || o.reported() != (Revision{}) {
			t.Errorf("status %+v, reported %s", a.Status(), o.reported())
		}
		o.mu.Lock()
		o.failing = false
		o.mu.Unlock()
		o.keepContact(lastRetry+time.Second, 5)
		if a.Status().Err != nil || o.reported() != (Revision{1, 5}) {
			t.Errorf("status %+v, reported %s", a.Status(), o.reported())
		}
	})
}

// One path that cannot be announced holds back no report, which drains of all other addresses wait for. It is counted until it is gone.
func TestWhatIsLeftOutIsCountedAndHoldsNothingBack(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.refuses = errors.Join(fmt.Errorf("a path: %w", ErrInvalid), errors.Join(fmt.Errorf("a peer: %w", ErrInvalid)))
		o.set(1, 2)
		o.hear(1)
		a, stop := o.run()
		defer stop()
		o.keepContact(2*time.Second, 1)
		if s := a.Status(); s.LeftOut != 2 || s.Announced.Index != 1 {
			t.Errorf("%d left out, announced %s", s.LeftOut, s.Announced)
		}
		o.mu.Lock()
		o.refuses = nil
		o.mu.Unlock()
		o.set(2, 1)
		o.keepContact(2*time.Second, 2)
		if s := a.Status(); s.LeftOut != 0 || s.Announced.Index != 2 {
			t.Errorf("%d left out, announced %s", s.LeftOut, s.Announced)
		}
	})
}

func TestWhatWasAnnouncedIsKeptWhenTheAnnouncerEnds(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		_, stop := o.run()
		o.keepContact(2*time.Second, 5)
		o.set(6, 6)
		time.Sleep(time.Millisecond)
		o.set(7, 7)
		time.Sleep(time.Millisecond) // announced, and within the pause between two saves
		stop()
		if o.last().Paths.Len() != 7 || o.disk.Revision != (Revision{1, 7}) {
			t.Errorf("announced %d paths, kept %s", o.last().Paths.Len(), o.disk.Revision)
		}
	})
}

// event is something that befalls a member; n says how much of it.
type event struct {
	kind string
	n    int
}

func genEvent() *rapid.Generator[event] {
	return rapid.Custom(func(t *rapid.T) event {
		kinds := []string{"change", "change", "hear", "hear", "wait", "disk", "switch", "speaker", "restart"}
		return event{rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.IntRange(1, 12000).Draw(t, "n")}
	})
}

// Whatever befalls a member, also restarts: reports keep their promise (owner.report checks each), what is announced
// never runs back, and once all is well the newest routes are announced at full rank.
func TestPropertyAnnouncerEndsWithTheNewestRoutes(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(rt *rapid.T) {
		events := rapid.SliceOfN(genEvent(), 1, 25).Draw(rt, "events")
		var fault string
		synctest.Test(t, func(*testing.T) { fault = befall(events) })
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

func befall(events []event) (fault string) {
	o := newOwner()
	index := uint64(1)
	o.set(index, 0)
	_, stop := o.run()
	defer func() { stop() }()
	flip := func(b *bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		*b = !*b
	}
	for _, e := range events {
		switch e.kind {
		case "change":
			index += uint64(e.n%3) + 1
			o.set(index, e.n%4)
		case "hear":
			o.keepContact(time.Duration(e.n/4)*time.Millisecond, index)
		case "wait":
			time.Sleep(time.Duration(e.n) * time.Millisecond)
		case "disk":
			flip(&o.diskFails)
		case "switch":
			flip(&o.slow)
		case "speaker":
			flip(&o.failing)
		case "restart":
			stop()
			o.mu.Lock()
			o.heard, o.commit, o.announced, o.withdrawn = time.Time{}, 0, nil, Revision{}
			o.mu.Unlock()
			_, stop = o.run()
		}
	}
	o.mu.Lock()
	o.diskFails, o.slow, o.failing = false, false, false
	o.mu.Unlock()
	o.keepContact(15*time.Second, index)
	if o.fault != "" {
		return o.fault
	}
	d := o.last()
	if content(d.Paths) != content(o.routes.Paths) || d.Demoted || o.reported() != o.routes.Revision {
		return fmt.Sprintf("announced %v, demoted %t, reported %s; the record asks for %v at %s",
			d.Paths, d.Demoted, o.reported(), o.routes.Paths, o.routes.Revision)
	}
	return ""
}

// A password is not of the record: a peer with another one is another peer at the same revision, and does not wait for a change.
func TestAPeerWithAnotherPasswordIsToldAtOnce(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(1, 1)
		o.hear(1)
		_, stop := o.run()
		defer stop()
		o.keepContact(2*time.Second, 1)
		o.mu.Lock()
		before := len(o.applies)
		o.routes.Peers = []Peer{{Name: "tor", Address: netip.MustParseAddr("192.0.2.1"), RemoteASN: 1, Password: "x"}}
		o.mu.Unlock()
		signal(o.changed)
		o.keepContact(time.Second, 1)
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.applies) != before+1 || len(o.applies[before].Peers) != 1 || o.applies[before].Touched != nil {
			t.Errorf("%d announcements, of which the last is %+v", len(o.applies)-before, o.applies[len(o.applies)-1])
		}
	})
}
