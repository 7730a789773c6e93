// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/probes"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// drawPiece draws a piece of a report, and says in words what it says, by subject and place.
func drawPiece(t *rapid.T, begins, more bool) (*fairleadv1.ProbeReport, map[string]probes.Opinion) {
	m, words := &fairleadv1.ProbeReport{Begins: begins, More: more}, map[string]probes.Opinion{}
	places := func(subject string) (out []*fairleadv1.PlaceReport) {
		for range rapid.IntRange(0, 3).Draw(t, "places") {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "address"))})
			o := rapid.SampledFrom([]probes.Opinion{probes.Unknown, probes.Good, probes.Bad}).Draw(t, "opinion")
			p := &fairleadv1.PlaceReport{Address: a.AsSlice(), Healthy: o == probes.Good, Unhealthy: o == probes.Bad}
			port := uint32(0)
			if subject[0] == 'r' {
				port = uint32(rapid.IntRange(80, 81).Draw(t, "port"))
				p.Port = &fairleadv1.Port{Protocol: 6, Number: port}
			}
			out = append(out, p)
			words[fmt.Sprintf("%s %s %d", subject, a, port)] = o
		}
		return out
	}
	for range rapid.IntRange(0, 2).Draw(t, "policies") {
		n := uint32(rapid.IntRange(1, 2).Draw(t, "number"))
		m.Redirects = append(m.Redirects, &fairleadv1.RedirectReport{Number: n, Places: places(fmt.Sprint("r", n))})
	}
	for range rapid.IntRange(0, 2).Draw(t, "services") {
		name := rapid.SampledFrom([]string{"shop/web", "shop/db"}).Draw(t, "name")
		m.Services = append(m.Services, &fairleadv1.ServiceReport{Name: name, Places: places("s" + name)})
	}
	return m, words
}

func wordsOf(r probes.Report) map[string]probes.Opinion {
	out := map[string]probes.Opinion{}
	for subject, places := range r {
		for at, o := range places {
			name := fmt.Sprint("r", subject.Redirect)
			if subject.Service != "" {
				name = "s" + string(subject.Service)
			}
			out[fmt.Sprintf("%s %s %d", name, at.Address, at.Port.Number)] = o
		}
	}
	return out
}

// Balancing §14, K50: what a node thinks counts once the last piece of a report is there, all pieces together, whatever stood in one that ended in
// the middle; until then what it said before counts.
// Rule: balancing §14.
func TestPropertyReportsInPiecesCountOnceTheyAreWhole(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		l := newBeats(time.Now)
		l.last["n1"] = Beat{}
		have, of, told := map[string]probes.Opinion{}, fsm.Revision{}, false
		var coming map[string]probes.Opinion
		for range rapid.IntRange(1, 12).Draw(t, "pieces") {
			begins, more := rapid.IntRange(0, 2).Draw(t, "begins") == 0, rapid.Bool().Draw(t, "more")
			m, words := drawPiece(t, begins, more)
			broken := rapid.IntRange(0, 9).Draw(t, "broken") == 0
			if broken {
				m.Services = append(m.Services, &fairleadv1.ServiceReport{Name: "shop/web", Places: []*fairleadv1.PlaceReport{{Address: []byte{1, 2, 3}}}})
			}
			next := fsm.Revision{Epoch: 1, Index: fsm.Index(rapid.IntRange(0, 9).Draw(t, "as of"))}
			if err := l.addProbes("n1", m, next); (err != nil) != broken {
				t.Fatalf("a piece that is broken: %v, and the error is %v", broken, err)
			}
			if begins || coming == nil {
				coming = map[string]probes.Opinion{}
			}
			maps.Copy(coming, words)
			switch {
			case broken:
				coming = nil
			case !more:
				have, of, told, coming = coming, next, true, nil
			}
			if got := wordsOf(l.probes["n1"].Report); !maps.Equal(got, have) || l.probes["n1"].Of != of {
				t.Fatalf("it is thought %v as of %v, want %v as of %v", got, l.probes["n1"].Of, have, of)
			}
			later := fsm.Revision{}
			if rapid.Bool().Draw(t, "is so still") {
				later = fsm.Revision{Epoch: 2, Index: fsm.Index(rapid.IntRange(0, 9).Draw(t, "as of"))}
			}
			if told && !later.IsZero() {
				of = later
			}
			if err := l.addProbes("n1", nil, later); err != nil { // a heartbeat without news
				t.Fatal(err)
			}
			if got := wordsOf(l.probes["n1"].Report); !maps.Equal(got, have) || l.probes["n1"].Of != of {
				t.Fatalf("without news it is thought %v as of %v, want %v as of %v", got, l.probes["n1"].Of, have, of)
			}
		}
		l.forgetProbes("n1")
		if len(l.probes["n1"].Report)+len(l.coming["n1"]) > 0 {
			t.Fatal("a new stream begins, and what the former one said is there still")
		}
	})
}

// The places of all pieces together are bounded, and of Services and policies together.
// Rule: balancing §14.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	l := newBeats(time.Now)
	l.last["n1"] = Beat{}
	half := make([]*fairleadv1.PlaceReport, maxProbed/2)
	for i := range half {
		half[i] = &fairleadv1.PlaceReport{Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).AsSlice()}
	}
	for i, m := range []*fairleadv1.ProbeReport{
		{Begins: true, More: true, Redirects: []*fairleadv1.RedirectReport{{Number: 1, Places: half}}},
		{More: true, Services: []*fairleadv1.ServiceReport{{Name: "shop/web", Places: half}}},
		{Services: []*fairleadv1.ServiceReport{{Name: "shop/db", Places: half[:1]}}},
	} {
		if err := l.addProbes("n1", m, fsm.Revision{}); (err != nil) != (i == 2) {
			t.Errorf("piece %d: %v", i, err)
		}
	}
	if l.probes["n1"].Report != nil {
		t.Error("a report beyond the bound counts")
	}
}

// Whatever subjects a node invents, and however often: its place is less than 4 MiB, and nothing is left of it once it says that there are none.
func TestInventedSubjectsAreBoundedByNode(t *testing.T) {
	t.Parallel()
	l := newBeats(time.Now)
	l.last["n1"] = Beat{}
	for turn := range 3 {
		for _, more := range []bool{false, true} { // one that is whole, and all but the end of the next one
			m := &fairleadv1.ProbeReport{Begins: true, More: more}
			for i := range maxProbed {
				name := fmt.Sprintf("%0*d", maxServiceName, turn*maxProbed+i)
				m.Services = append(m.Services, &fairleadv1.ServiceReport{Name: name, Places: []*fairleadv1.PlaceReport{{Address: []byte{10, 0, byte(i >> 8), byte(i)}}}})
			}
			if err := l.addProbes("n1", m, fsm.Revision{Epoch: 1, Index: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if l.held > 4<<20 || l.held < 3<<20 {
			t.Errorf("turn %d: %d bytes are held", turn, l.held)
		}
	}
	l.forgetProbes("n1")
	if l.held != 0 {
		t.Errorf("%d bytes are left", l.held)
	}
}

// A place of a Service has no port; one of a policy that has none is a place, too, and nobody's.
// Rule: K50.
func TestPlacesOfReports(t *testing.T) {
	t.Parallel()
	at, err := placeOf(&fairleadv1.PlaceReport{Address: []byte{10, 0, 0, 1}})
	if err != nil || at != (fsm.Probed{Address: netip.MustParseAddr("10.0.0.1")}) {
		t.Errorf("%+v: %v", at, err)
	}
}

// pieceOf is a piece of a report on Services of so many names, without places.
func pieceOf(names int, length int) *fairleadv1.ProbeReport {
	m := &fairleadv1.ProbeReport{More: true}
	for i := range names {
		m.Services = append(m.Services, &fairleadv1.ServiceReport{Name: fmt.Sprintf("%0*d", length, i)})
	}
	return m
}

// What one node says of probes is bounded in subjects and bytes, in however many pieces it comes, and so is what all say.
func TestWhatNodesSayOfProbesIsBounded(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]*fairleadv1.ProbeReport{
		"subjects without places": pieceOf(maxProbed+1, 9), "a name without end": pieceOf(1, maxServiceName+1),
	} {
		if err := newBeats(time.Now).addProbes("n1", piece, fsm.Revision{}); err == nil {
			t.Errorf("%s are taken in", name)
		}
	}
	l := newBeats(time.Now)
	whole := pieceOf(maxProbed, maxServiceName)
	if err := l.addProbes("n1", whole, fsm.Revision{}); err != nil {
		t.Fatalf("the most that one may say: %v", err)
	}
	if err := l.addProbes("n1", &fairleadv1.ProbeReport{More: true, Services: []*fairleadv1.ServiceReport{{Name: "one/more"}}}, fsm.Revision{}); err == nil {
		t.Error("a second piece goes beyond the bound")
	}
	refused := 0
	for i := range 300 {
		if l.addProbes(fsm.NodeID(fmt.Sprint("n", i)), whole, fsm.Revision{}) != nil {
			refused++
		}
	}
	if l.held > maxHeldBytes || refused == 0 || refused == 300 {
		t.Errorf("%d of 300 nodes were refused, %d MiB are held", refused, l.held>>20)
	}
	for i := range 300 {
		l.forgetProbes(fsm.NodeID(fmt.Sprint("n", i)))
	}
	if l.held != 0 || len(l.half) > 0 {
		t.Errorf("%d bytes are held of nobody", l.held)
	}
}

// What a node said goes with its streams: half a report at once, the rest a while after the last heartbeat.
func TestWhatNodesSaidIsForgottenWithTheirStreams(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newBeats(func() time.Time { return now })
	say := func(more bool) {
		t.Helper()
		piece := pieceOf(1, 9)
		piece.More, piece.Begins = more, true
		l.add(Beat{Node: "n1", Boot: "b1", At: now, Flows: &Flows{}}, map[fsm.PeerName]string{"tor": "established"})
		if err := l.addProbes("n1", piece, fsm.Revision{}); err != nil {
			t.Fatal(err)
		}
	}
	l.begin("n1", true)
	l.begin("n1", true) // a new stream, before the end of the former one was noticed
	say(false)
	say(true)
	l.end("n1")
	if len(l.coming) != 1 {
		t.Error("the end of a former stream takes what the newer one says")
	}
	now = now.Add(2 * rememberSaid)
	l.forgetSilent()
	if len(l.probes) != 1 || len(l.sessions) != 1 {
		t.Error("it is forgotten while there is a stream")
	}
	say(true)
	l.end("n1")
	l.forgetSilent()
	if len(l.coming) != 0 || len(l.probes) != 1 || len(l.sessions) != 1 {
		t.Errorf("after its last stream: %d half reports, %d reports, %d of sessions", len(l.coming), len(l.probes), len(l.sessions))
	}
	now = now.Add(2 * rememberSaid)
	l.forgetSilent()
	if len(l.probes)+len(l.sessions)+len(l.streams)+l.held != 0 || l.last["n1"].Flows != nil || l.last["n1"].Boot != "b1" {
		t.Errorf("a while later: %+v", l)
	}
}
