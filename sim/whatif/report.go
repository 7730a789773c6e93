// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Report is what came of all questions about one cluster. Its JSON form is stable.
type Report struct {
	Folder   string   `json:"folder"`
	Seed     uint64   `json:"seed"`
	Module   string   `json:"module"` // the program that ran: reports compare for equal ones only
	Members  []string `json:"members"`
	Nodes    []string `json:"nodes"`
	Switches []string `json:"switches"`
	// Made is what was added to the manifests, Notes what people should know besides, Unused what plays no part.
	Made   []string `json:"made"`
	Notes  []string `json:"notes"`
	Unused []string `json:"unused"`
	// Unserved are the Services that had no address or no answer before anything went wrong, and why.
	Unserved []Unserved `json:"unserved"`
	Answers  []Answer   `json:"answers"`
	// Resolution is how often each address is asked by each of two clients, in seconds: no gap is told finer.
	Resolution float64 `json:"resolution_seconds"`
	// Checks are how often each rule was put to the test in all worlds: those with 0 had nothing to judge here.
	Checks map[string]int `json:"checks"`
	// Uncovered says what the answers do not tell.
	Uncovered string `json:"uncovered"`
}

// Unserved is a Service that nothing can be told of.
type Unserved struct {
	Service string `json:"service"`
	Why     string `json:"why"`
}

// Answer is what came of one mishap. Times are in virtual seconds since it began.
type Answer struct {
	ID      string `json:"id"`
	What    string `json:"what"`
	Whom    string `json:"whom,omitempty"` // it befell, where that was drawn
	Summary string `json:"summary"`
	// Lasted is how long the mishap did, Watched until when was looked.
	Lasted  float64 `json:"lasted_seconds"`
	Watched float64 `json:"watched_seconds"`
	// Leaders are those that came to lead since.
	Leaders   []Step    `json:"leaders"`
	Addresses []Outcome `json:"addresses"`
	// Violation is the rule that broke, if one did: a fault of the product's or of the simulator's. What the addresses saw
	// is then told up to that time.
	Violation *Violation `json:"violation,omitempty"`
	Digest    string     `json:"digest"`
	Replay    string     `json:"replay"` // the command that repeats it
}

// Violation is a rule seen broken.
type Violation struct {
	Rule    string  `json:"rule"`
	At      float64 `json:"at"` // virtual seconds since the world began
	Subject string  `json:"subject"`
	Text    string  `json:"text"`
}

// String says what was seen, and of what.
func (v *Violation) String() string { return v.Subject + ": " + v.Text }

// Outcome is what one address of one Service saw.
type Outcome struct {
	Service string `json:"service"`
	Address string `json:"address"`
	// Sent and Failed count requests since the mishap began, Early those that failed before it, Unwanted those that nothing
	// could have served.
	Sent     int `json:"sent"`
	Failed   int `json:"failed"`
	Early    int `json:"early,omitempty"`
	Unwanted int `json:"unwanted,omitempty"`
	// Unserved tells that no request was answered before the mishap either: nothing can be told.
	Unserved bool `json:"unserved,omitempty"`
	// Why is what requests failed for most often.
	Why string `json:"why,omitempty"`
	// Gap is the longest time in which requests failed, some or all, and GapBy the same by switch.
	Gap   Gap            `json:"gap"`
	GapBy map[string]Gap `json:"gap_by_switch"`
	// Whole is when the last request failed, nothing if none did, and Healed tells whether that was over at the end.
	Whole  *float64 `json:"whole_after_seconds,omitempty"`
	Healed bool     `json:"healed"`
	// Where is who served: before the mishap, during it and after.
	Before Where  `json:"before"`
	During Where  `json:"during"`
	After  Where  `json:"after"`
	Route  []Step `json:"route"`
}

// Gap is a time in which requests failed.
type Gap struct {
	Seconds float64 `json:"seconds"`
	Failed  int     `json:"failed"`
	From    float64 `json:"from"`
}

// Where is who served, each with its share of all.
type Where struct {
	Nodes []Share `json:"nodes"`
	Pods  []Share `json:"pods"`
}

// Share is the part of one.
type Share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Step is something that happened, after the mishap began.
type Step struct {
	After float64 `json:"after"`
	Text  string  `json:"text"`
}

// healedFor is how long nothing must have failed for an address to count as whole again.
const healedFor = 2 * time.Second

// outcomes tells what each address saw.
func (a *account) outcomes() []Outcome {
	out := []Outcome{}
	for _, p := range a.places() {
		s := a.seen[p]
		o := Outcome{
			Service: p.service, Address: p.address.String(), Sent: s.sent, Failed: s.failed, Early: total(s.early), Unwanted: s.unwanted,
			Why: mostOften(s.whys), Gap: a.gap(s.all.longest), GapBy: map[string]Gap{}, Healed: true,
			Before: s.where[before].tell(), During: s.where[during].tell(), After: s.where[after].tell(), Route: steps(s.steps),
		}
		for name, g := range s.by {
			o.GapBy[name] = a.gap(g.longest)
		}
		if s.failed > 0 {
			at := seconds(s.last + a.o.Every/clients - a.began)
			o.Whole, o.Healed = &at, a.until-s.last > healedFor
		}
		o.Unserved = len(o.Before.Nodes) == 0
		out = append(out, o)
	}
	return out
}

func (a *account) gap(g gap) Gap {
	if g.failed == 0 {
		return Gap{}
	}
	return Gap{Seconds: seconds(g.length()), Failed: g.failed, From: seconds(g.from - a.began)}
}

func steps(of []moment) []Step {
	out := []Step{}
	for _, m := range of {
		out = append(out, Step{seconds(m.after), m.text})
	}
	return out
}

// seconds rounds to milliseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func (s *shares) tell() Where { return Where{Nodes: parts(s.nodes), Pods: parts(s.pods)} }

func total(of map[string]int) (n int) {
	for _, x := range of {
		n += x
	}
	return n
}

// parts are shares, the greatest first.
func parts(of map[string]int) []Share {
	out, all := []Share{}, total(of)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, Share{name, math.Round(float64(of[name])*1000/float64(all)) / 1000})
	}
	slices.SortStableFunc(out, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name)) })
	return out
}
