// SPDX-License-Identifier: Apache-2.0

package testkit

import "testing"

// Shared is a test whose parts share what is dear to start, such as a server or a group of members. What is made for it, with Shared as its
// testing.TB, lives as long as the whole test, and fails the part that runs.
type Shared struct {
	testing.TB // of the part that runs; between parts that of the whole
	whole      *testing.T
}

// Share begins a test of parts.
func Share(t *testing.T) *Shared { return &Shared{t, t} }

// Part runs the next part, as a subtest. One that fails is the last: it may have left what the next ones do not expect.
//
// A part has to leave what is shared as it found it. That belongs to the part, so that who does not is the one who fails.
func (s *Shared) Part(name string, part func(t *testing.T)) {
	s.whole.Helper()
	if !s.whole.Run(name, func(t *testing.T) {
		s.TB = t
		defer func() { s.TB = s.whole }()
		part(t)
	}) {
		s.whole.FailNow()
	}
}
