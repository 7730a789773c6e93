// SPDX-License-Identifier: Apache-2.0

package sock

import "time"

// claim is that a rule is dialled at a place.
type claim struct {
	rule  *Rule
	front *Front
	kind  Kind
	mode  Mode
}

// best gives, of each kind, the claim that counts of those at a place (balancing §3: the oldest).
func best(claims []claim) (out [kinds]*claim) {
	for i := range claims {
		c := &claims[i]
		if k := c.kind; out[k] == nil || c.rule.before(out[k].rule) < 0 {
			out[k] = c
		}
	}
	return out
}

// compose decides what a place's row says, given the claims that count there (balancing §7). It is false where none does.
func (p *Planner) compose(claims [kinds]*claim) (Row, bool) {
	first, ok := p.firstOf(claims, LocalRedirect)
	if !ok {
		return Row{First: p.instead(claims)}, claims[LocalRedirect] != nil
	}
	row := Row{First: first}
	if first.Limited || first.Spares {
		if row.Then, ok = p.firstOf(claims, first.Kind+1); !ok {
			row.Then = p.instead(claims)
		}
	}
	return row, true
}

// instead is what becomes of a call that no rule takes. Where there is a redirect that may not, or cannot, take it, and that captures an
// address of its own, nothing stands behind that, and a call that is let through would hang (balancing §11). Behind an address of a
// Service is the Service, which somebody else may serve where no rule does.
func (p *Planner) instead(claims [kinds]*claim) Choice {
	redirect := claims[LocalRedirect]
	switch {
	case redirect == nil:
		return Choice{}
	case redirect.mode == LocalRedirectService:
		return p.choice(redirect, Pass, LocalRedirect)
	}
	return p.choice(redirect, Refuse, LocalRedirect)
}

// firstOf is the choice that counts among those of a kind and after it.
func (p *Planner) firstOf(claims [kinds]*claim, kind Kind) (Choice, bool) {
	for k := kind; k < kinds; k++ {
		c := claims[k]
		switch {
		case c == nil:
		case len(c.front.Backends) > 0:
			return p.choice(c, Use, k), true
		case c.front.Empty != Next:
			return p.choice(c, c.front.Empty, k), true
		}
	}
	return Choice{}, false
}

func (p *Planner) choice(c *claim, v Verdict, k Kind) Choice {
	out := Choice{Rule: c.rule.ID, Verdict: v, Kind: k, Mode: c.mode}
	if v == Use {
		s := p.setOf[c.front]
		out.Set, out.Count = s.id, uint32(len(s.slots))
		out.Affinity = uint32((c.front.Affinity + time.Second - 1) / time.Second)
		out.Limited, out.Spares = k == LocalRedirect, c.rule.SparesBackends
	}
	return out
}
