// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/event"
)

func pageOf(t *testing.T, trace Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, trace, Page{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// violated is a trace in which a rule was broken with a certain event.
func violated(trace Trace, number uint64) Trace {
	for e := range trace.Events() {
		if e.Number == number {
			trace.About.Violation = &Violation{Rule: "S1", At: e.At, Number: number, Sentence: "m2 and m3 differ at index 8812"}
		}
	}
	return trace
}

// What opening a long run and drawing all of it may take of processors, all of the browser's processes together: several
// times the 0.7 s and 45 ms that it does.
const (
	openedWithin = 3 * time.Second
	drawnWithin  = 250 * time.Millisecond
)

// What an engineer does with a long run: open it, look, jump to the violation, click, filter.
func TestPageOfALongRunStaysUsable(t *testing.T) {
	b := openBrowser(t, 1280, 800)
	trace := violated(invent(5, 10, 365_000), 200_000)
	page := pageOf(t, trace)
	began := b.cpu()
	b.open(page, "")
	opened := b.cpu() - began
	t.Logf("%d events, page of %d bytes, drawn after %s ms by the clock, %v of processors", trace.Kept(), len(page),
		b.eval("document.documentElement.dataset.drawn"), opened)
	if opened > openedWithin || trace.Kept() < 300_000 {
		t.Errorf("%d events drawn after %v", trace.Kept(), opened)
	}
	b.picture("long-whole")

	const frames = 20
	began = b.cpu()
	b.eval(fmt.Sprintf("for (let i = 0; i < %d; i++) fairlead.draw()", frames))
	frame := (b.cpu() - began) / frames
	t.Logf("a frame of the whole run takes %v", frame)
	if frame > drawnWithin {
		t.Errorf("a frame of the whole run takes %v", frame)
	}

	b.key("v")
	if text := b.eval("document.getElementById('details').textContent"); !strings.Contains(text, "number 200000") {
		t.Errorf("the details of the violation are %q", text)
	}
	b.picture("long-violation")
	if n, _ := strconv.Atoi(b.eval("document.querySelectorAll('*').length")); n > 600 {
		t.Errorf("%d elements in the document", n)
	}

	b.key("0")
	b.key("/")
	b.call("Input.insertText", map[string]any{"text": "served=no"}, nil)
	b.wait("document.getElementById('count').textContent.includes(' of ')")
	lost := 0
	for e := range trace.Events() {
		if f, ok := e.Event.(event.Flow); ok && !f.Served {
			lost++
		}
	}
	if got := b.eval("document.getElementById('count').textContent"); !strings.HasPrefix(got, fmt.Sprintf("%d of ", lost)) || lost == 0 {
		t.Errorf("%d flows were not served, the page counts %q", lost, got)
	}
	b.key("Escape")
	b.picture("long-filtered")
}

// A click on a mark shows all that the event has, and a log entry in words.
func TestClickShowsTheEvent(t *testing.T) {
	b := openBrowser(t, 1280, 800)
	trace := invent(3, 4, 400)
	b.open(pageOf(t, trace), "")
	b.picture("small")
	var applied, message event.Stamped
	for e := range trace.Events() {
		if a, ok := e.Event.(event.Applied); ok && a.Index == 9 && a.Process == "m2" {
			applied = e
		}
		if m, ok := e.Event.(event.Message); ok && m.To == "n2" && m.Arrived > 0 {
			message = e
		}
	}
	for _, e := range []event.Stamped{applied, message} {
		place := b.eval(fmt.Sprintf(`(() => {
			const { trace, view, picture, story } = fairlead;
			const i = trace.number.indexOf(%d);
			view.set(trace.at[i] - 1e6, 2e6);
			fairlead.draw();
			const box = document.getElementById('picture').getBoundingClientRect();
			let [x, y] = [picture.markX(i) + 6, view.y(trace.at[i])];
			if (trace.from[i] >= 0) { // in the middle of the arrow
				x = (picture.x[story.fromLane[i]] + picture.x[story.lane[i]]) / 2;
				y = (view.y(trace.sent[i]) + y) / 2;
			}
			return JSON.stringify([box.x + x, box.y + picture.head + y]);
		})()`, e.Number))
		var at [2]float64
		if err := json.Unmarshal([]byte(place), &at); err != nil {
			t.Fatal(err)
		}
		var text string
		for range 8 { // what else is there comes with further clicks
			b.click(at[0], at[1])
			if text = b.eval("document.getElementById('details').textContent"); strings.Contains(text, fmt.Sprint("number ", e.Number)) {
				break
			}
		}
		_, fields := Describe(e)
		for _, f := range fields {
			if !strings.Contains(text, f.Name) || f.Value != "" && !strings.Contains(text, f.Value) {
				t.Errorf("the details of %q lack %s %q:\n%s", Sentence(e), f.Name, f.Value, text)
			}
		}
		if _, ok := e.Event.(event.Applied); ok && (!strings.Contains(text, "agents acknowledged") || !strings.Contains(text, "m3 applies 9")) {
			t.Errorf("the entry is not in words, or not compared with other members:\n%s", text)
		}
		b.picture("click-" + kindName(e))
	}
}

// Whoever looks for what led to a violation clicks on what it is about.
func TestClickOnASubjectShowsOnlyWhatMentionsIt(t *testing.T) {
	b := openBrowser(t, 1280, 800)
	trace := violated(invent(3, 4, 400), 200)
	b.open(pageOf(t, trace), "")
	offered := func() string {
		return b.eval(`[...document.querySelectorAll('#details .mention')].map((b) => b.textContent).join(' ')`)
	}
	if got := offered(); got != "m2 m3" {
		t.Errorf("of a violation of m2 and m3 it offers %q", got)
	}
	b.picture("subjects")
	b.eval(`document.querySelector('#details .mention').click()`)
	if got := b.eval("document.getElementById('filter').value + ', ' + document.getElementById('count').textContent"); !strings.HasPrefix(got, "m2, ") || !strings.Contains(got, " of ") {
		t.Errorf("after the click: %q", got)
	}
	b.key("v")
	text := b.eval("document.getElementById('details').textContent")
	if !strings.Contains(text, "S1 broken") || !strings.Contains(text, "m2 and m3 differ") || !strings.Contains(text, "number 200") {
		t.Errorf("the details of the violation are %q", text)
	}
	if got := offered(); !strings.HasPrefix(got, "m2 m3 ") {
		t.Errorf("the event offers %q", got)
	}
}

func kindName(e event.Stamped) string {
	name, _ := Describe(e)
	return name
}

// one is an event of each kind in which every field has a value of its own, and an empty one.
func one() []event.Stamped {
	var run []event.Stamped
	n := 0
	var give func(v reflect.Value)
	give = func(v reflect.Value) {
		n++
		switch {
		case v.Type() == addrType || v.Type() == prefixType:
			alter(v)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				give(v.Field(i))
			}
		case v.Kind() == reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			give(v.Index(0))
			give(v.Index(1))
		case v.Kind() == reflect.String:
			v.SetString(fmt.Sprintf("Text-%d <b>&\u00fc", n))
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.CanInt():
			v.SetInt(int64(n)*1_000_003 - 20_000_000)
		case v.CanUint():
			v.SetUint(uint64(n))
		}
	}
	for _, zero := range zeros() {
		full := reflect.New(reflect.TypeOf(zero)).Elem()
		give(full)
		at := time.Duration(len(run)+1) * 1_234_567
		run = append(run, event.Stamped{At: at, Number: uint64(len(run)) + 1, Event: full.Interface().(event.Event)})
		run = append(run, event.Stamped{At: at, Number: uint64(len(run)) + 1, Event: zero})
	}
	return run
}

// The page reads every kind of event as it was written, and says of it what the terminal says.
func TestPageReadsEveryKindOfEvent(t *testing.T) {
	b := openBrowser(t, 1280, 800)
	run := one()
	b.open(pageOf(t, heard(run, Options{Keep: true}).Trace()), "")
	answer := b.eval(`(async () => {
		const { sentence } = await import('page/sentence');
		const { trace, story } = fairlead;
		return JSON.stringify(Array.from({ length: trace.count }, (_, i) => ({
			at: trace.at[i], number: trace.number[i], kind: trace.name(i), sentence: sentence(trace, i), lane: story.lanes[story.lane[i]].name,
			fields: trace.fields(i).map((f) => [f.name, f.value]),
		})));
	})()`)
	var seen []struct {
		At             time.Duration
		Number         uint64
		Kind, Sentence string
		Lane           string
		Fields         [][2]string
	}
	if err := json.Unmarshal([]byte(answer), &seen); err != nil || len(seen) != len(run) {
		t.Fatalf("%d events seen of %d, %v", len(seen), len(run), err)
	}
	for i, e := range run {
		kind, fields := Describe(e)
		want := make([][2]string, 0, len(fields))
		for _, f := range fields {
			want = append(want, [2]string{f.Name, f.Value})
		}
		lane := e.Lane()
		if lane == "" && !slices.Contains([]string{"calm", "fault-began", "fault-ended"}, kind) {
			lane = "unnamed"
		} else if lane == "" {
			lane = "faults"
		}
		got := seen[i]
		if got.At != e.At || got.Number != e.Number || got.Kind != kind || got.Sentence != Sentence(e) || got.Lane != lane ||
			!slices.Equal(got.Fields, want) {
			t.Errorf("written %v %d %s %q in lane %q %v\nread    %+v", e.At, e.Number, kind, Sentence(e), lane, want, got)
		}
	}
}

// The filter of the page takes what a plain look at each event takes.
func TestPageFilterTakesWhatMatches(t *testing.T) {
	b := openBrowser(t, 1280, 800)
	trace := invent(3, 4, 6000)
	b.open(pageOf(t, trace), "")
	has := func(word string) func(event.Stamped) bool {
		return func(e event.Stamped) bool {
			kind, fields := Describe(e)
			text := kind
			for _, f := range fields {
				if f.kind == "text" || f.kind == "texts" || f.kind == "paths" {
					text += "\n" + f.Value
				}
			}
			if a, ok := e.Event.(event.Applied); ok {
				text += "\n" + EntryText(a.Entry)
			}
			if o, ok := e.Event.(event.Object); ok {
				text += "\n" + strings.ReplaceAll(string(o.JSON), `":`, `": `)
			}
			return strings.Contains(strings.ToLower(text), strings.ToLower(word))
		}
	}
	is := func(name, value string) func(event.Stamped) bool {
		return func(e event.Stamped) bool {
			_, fields := Describe(e)
			return slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name && f.Value == value })
		}
	}
	all := func(tests ...func(event.Stamped) bool) func(event.Stamped) bool {
		return func(e event.Stamped) bool {
			return !slices.ContainsFunc(tests, func(test func(event.Stamped) bool) bool { return !test(e) })
		}
	}
	not := func(test func(event.Stamped) bool) func(event.Stamped) bool {
		return func(e event.Stamped) bool { return !test(e) }
	}
	for query, takes := range map[string]func(event.Stamped) bool{
		"":                      func(event.Stamped) bool { return true },
		"m2":                    has("m2"),
		"192.0.2.17":            has("192.0.2.17"),
		"KUBELET":               has("kubelet"),
		"applied":               has("applied"),
		"index=42":              is("index", "42"),
		"process=m1":            is("process", "m1"),
		"killed=yes":            is("killed", "yes"),
		"m2 raft":               all(has("m2"), has("raft")),
		"message -raft":         all(has("message"), not(has("raft"))),
		"-m1":                   not(has("m1")),
		`"agents acknowledged"`: has("agents acknowledged"),
		"process=m1 index=42":   all(is("process", "m1"), is("index", "42")),
		"nothing-of-the-kind":   has("nothing-of-the-kind"),
	} {
		want := 0
		for e := range trace.Events() {
			if takes(e) {
				want++
			}
		}
		got := b.eval(fmt.Sprintf(`(async () => {
			const { matching } = await import('page/filter');
			const taken = matching(fairlead.trace, %s);
			return String(taken ? taken.reduce((a, b) => a + b, 0) : fairlead.trace.count);
		})()`, strconv.Quote(query)))
		if got != strconv.Itoa(want) {
			t.Errorf("filter %q takes %s events, want %d", query, got, want)
		}
	}
}

// Without events, with some dropped, with no match: the page says so.
func TestPageSaysWhatItLacks(t *testing.T) {
	b := openBrowser(t, 1280, 800)
	b.open(pageOf(t, New(Options{}).Trace()), "")
	if text := b.eval("document.getElementById('empty').innerText"); !strings.Contains(text, "no events") {
		t.Errorf("an empty trace says %q", text)
	}
	b.picture("empty")
	r := New(Options{Keep: true, Limit: 100_000})
	busy(r, 50_000)
	b.open(pageOf(t, r.Trace()), "#filter=nothing-of-the-kind")
	if text := b.eval("document.querySelector('.missing').innerText"); !strings.Contains(text, "did not fit") {
		t.Errorf("a trace with dropped events says %q", text)
	}
	if text := b.eval("document.getElementById('empty').innerText"); !strings.Contains(text, "No event matches") {
		t.Errorf("a filter without a match says %q", text)
	}
	b.picture("no-match")
}

// What a run is made of is shown and never run, and nothing is loaded.
func TestPageTrustsNothing(t *testing.T) {
	const hostile = `</script><script>document.title='taken'</script><img src=x onerror="document.title='taken'">`
	r := New(Options{Keep: true})
	r.Hear(event.Stamped{Number: 1, Event: event.Log{Process: hostile, Level: "INFO", Text: hostile, Fields: hostile}})
	trace := r.Trace()
	trace.About = About{Scenario: hostile, Command: hostile, Module: hostile, Violation: &Violation{Rule: hostile, Number: 1, Sentence: hostile}}
	page := pageOf(t, trace)
	if bytes.Contains(page, []byte(hostile)) || regexp.MustCompile(`<[a-z]+[^<>]*\s(src|href)=|https?:`).Match(page) {
		t.Error("the page holds hostile text, or refers to something outside")
	}
	b := openBrowser(t, 1280, 800)
	b.open(page, "")
	b.key("v")
	if title := b.eval("document.title"); title == "taken" {
		t.Error("text of the run was run as a script")
	}
	if text := b.eval("document.getElementById('details').textContent"); !strings.Contains(text, "onerror") {
		t.Errorf("the details are %q", text)
	}
}

func TestPageAndTextHoldNoSecrets(t *testing.T) {
	r := New(Options{Keep: true})
	for i, kind := range []string{"Secret", "Service"} {
		r.Hear(event.Stamped{Number: uint64(i) + 1, Event: event.Object{Kind: kind, Name: "x", Fields: "fields-" + kind, JSON: []byte("json-" + kind)}})
	}
	page := pageOf(t, r.Trace())
	packed := regexp.MustCompile(`id="trace">([^<]*)<`).FindSubmatch(page)[1]
	file, err := base64.StdEncoding.DecodeString(string(packed))
	if err != nil {
		t.Fatal(err)
	}
	content := unzipped(t, file)
	for word, want := range map[string]bool{"fields-Secret": false, "json-Secret": false, "fields-Service": true, "json-Service": true} {
		if got := bytes.Contains(content, []byte(word)); got != want {
			t.Errorf("the page holds %q: %v", word, got)
		}
	}
	var text strings.Builder
	if err := WriteText(&text, r.Trace(), Filter{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "fields-Secret") || !strings.Contains(text.String(), "fields-Service") {
		t.Errorf("the text is %s", text.String())
	}
}
