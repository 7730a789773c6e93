// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"context"
	"log/slog"
	"maps"

	"fairlead.io/fairlead/api/desired"
)

// Shall are the rows that a host has to have by a state, made out of those that it has: what is as it shall be keeps its sets and numbers.
// Room counts as without end, so that what does not fit shows as lacking. It touches no kernel.
func Shall(c Config, have Rows, want desired.State) (Rows, error) {
	e := &onPaper{Rows{maps.Clone(have.Places), maps.Clone(have.Slots), maps.Clone(have.Nodes), maps.Clone(have.Windows)}}
	const endless = 1 << 30
	s, err := Over(Options{Config: c, Room: Capacity{endless, endless, endless}, Log: slog.New(slog.DiscardHandler)}, e)
	if err != nil {
		return Rows{}, err
	}
	_, err = s.Apply(context.Background(), want)
	return e.rows, err
}

// onPaper is an Edge without a kernel.
type onPaper struct{ rows Rows }

func (e *onPaper) Read() (Rows, error)                           { return e.rows, nil }
func (e *onPaper) Apply(c Change) error                          { e.rows.Apply(c); return nil }
func (e *onPaper) Attach() error                                 { return nil }
func (e *onPaper) Counters() (map[Kind]map[string]uint64, error) { return nil, nil }
