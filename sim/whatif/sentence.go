// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// mostTold is how many addresses a sentence is about.
const mostTold = 3

// summarize is one sentence about an answer: what went wrong, and what came of it for whom.
func (a *Answer) summarize() string {
	text := "If " + a.What
	if a.Whom != "" {
		text += " (here " + a.Whom + ")"
	}
	text += ": "
	if a.Violation != nil {
		return text + fmt.Sprintf("rule %s broke: %s. This is a fault; nothing else can be told.", a.Violation.Rule, a.Violation)
	}
	served := a.served()
	hurt := slices.DeleteFunc(slices.Clone(served), func(o Outcome) bool { return o.Failed == 0 })
	slices.SortStableFunc(hurt, func(x, y Outcome) int {
		if x.Healed != y.Healed {
			return cmp.Compare(rank(x.Healed), rank(y.Healed))
		}
		return cmp.Compare(y.Gap.Seconds, x.Gap.Seconds)
	})
	if len(hurt) == 0 {
		return text + unhurt(served) + a.led() + "."
	}
	var told []string
	for _, o := range hurt[:min(mostTold, len(hurt))] {
		told = append(told, o.sentence())
	}
	if rest := hurt[len(told):]; len(rest) > 0 {
		told = append(told, fmt.Sprintf("%s miss requests for %s at most", number(len(rest), "more address", "more addresses"), duration(worst(rest))))
	}
	text += strings.Join(told, "; ")
	if fine := len(served) - len(hurt); fine == 1 {
		text += "; the other one notices nothing"
	} else if fine > 1 {
		text += fmt.Sprintf("; the other %d notice nothing", fine)
	}
	return text + a.led() + "."
}

// Brief says in a few words how an answer came out, for a line of progress.
func (a Answer) Brief() string {
	hurt, most := 0, 0.0
	for _, o := range a.served() {
		if o.Failed > 0 {
			hurt, most = hurt+1, max(most, o.Gap.Seconds)
		}
	}
	switch {
	case a.Violation != nil:
		return "rule " + a.Violation.Rule + " broke"
	case hurt == 0:
		return "no request lost"
	}
	return fmt.Sprintf("%s lost requests for %s at most", number(hurt, "address", "addresses"), duration(most))
}

func rank(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// served are the addresses that were served before the mishap: of others it can tell nothing.
func (a Answer) served() []Outcome {
	return slices.DeleteFunc(slices.Clone(a.Addresses), func(o Outcome) bool { return o.Unserved })
}

// unhurt says that no request was lost.
func unhurt(served []Outcome) string {
	sent := 0
	for _, o := range served {
		sent += o.Sent
	}
	switch len(served) {
	case 0:
		return "nothing can be told, as no address was served before"
	case 1:
		return fmt.Sprintf("%s (%s) notices nothing: %d requests, none lost", served[0].Address, served[0].Service, sent)
	}
	return fmt.Sprintf("none of the %d addresses notices anything: %d requests, none lost", len(served), sent)
}

// led says who leads since.
func (a *Answer) led() string {
	if len(a.Leaders) == 0 {
		return ""
	}
	l := a.Leaders[0]
	return fmt.Sprintf("; %s leads after %s", l.Text, duration(l.After))
}

func worst(of []Outcome) (most float64) {
	for _, o := range of {
		most = max(most, o.Gap.Seconds)
	}
	return most
}

// sentence is what an address saw that missed requests.
func (o Outcome) sentence() string {
	text := fmt.Sprintf("%s (%s) misses requests for %s at most", o.Address, o.Service, duration(o.Gap.Seconds))
	if len(o.During.Nodes) == 0 {
		text = fmt.Sprintf("%s (%s) misses all requests for %s", o.Address, o.Service, duration(o.Gap.Seconds))
	}
	if !o.Healed {
		return text + ", and still does at the end (" + o.Why + ")"
	}
	if then := serve(o.During.Nodes); then != "" && !same(o.Before.Nodes, o.During.Nodes) {
		return text + ", then " + then
	}
	return text + " (" + o.Why + ")"
}

// even is by how much shares may differ and still be called equal.
const even = 0.08

// serve says who serves.
func serve(shares []Share) string {
	var names []string
	equal := true
	for _, s := range shares {
		names = append(names, s.Name)
		equal = equal && math.Abs(s.Share-1/float64(len(shares))) < even
	}
	switch {
	case len(shares) == 0:
		return ""
	case len(shares) == 1:
		return names[0] + " serves it alone"
	case equal:
		slices.Sort(names)
		return list(names) + " serve it " + fraction(len(shares)) + " each"
	}
	var parts []string
	for _, s := range shares {
		parts = append(parts, fmt.Sprintf("%s %d %%", s.Name, int(math.Round(s.Share*100))))
	}
	return "it is served by " + list(parts)
}

func fraction(of int) string {
	if names := []string{"half", "a third", "a quarter", "a fifth"}; of-2 < len(names) {
		return names[of-2]
	}
	return fmt.Sprintf("1/%d", of)
}

// same tells whether the same ones serve, in about the same parts.
func same(a, b []Share) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x Share) bool {
		return !slices.ContainsFunc(b, func(y Share) bool { return x.Name == y.Name && math.Abs(x.Share-y.Share) < even })
	})
}

// duration is a time as people say it.
func duration(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.2f s", s)
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
