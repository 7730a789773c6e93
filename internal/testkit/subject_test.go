// SPDX-License-Identifier: Apache-2.0

package testkit_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// subjects are tests for processes of this program that the tests of this package start.
var subjects = map[string]func(*testing.T){
	"passes": func(t *testing.T) {
		testkit.Check(t, func(t *rapid.T) { rapid.SliceOf(rapid.Int()).Draw(t, "numbers") })
	},
	// The stream gives equal bits however the map is gone through: the values tell.
	"maps": func(t *testing.T) {
		testkit.Check(t, func(t *rapid.T) {
			var names []string
			for name := range map[string]bool{"a": true, "b": true, "c": true, "d": true} {
				names = append(names, name)
			}
			rapid.SampledFrom(names).Draw(t, "name")
		})
	},
	"pointers": func(t *testing.T) {
		testkit.Check(t, func(t *rapid.T) {
			type inner struct{ at *int }
			rapid.Map(rapid.Int(), func(n int) *inner { return &inner{&n} }).Draw(t, "pointer")
		})
	},
	"several": func(t *testing.T) {
		for _, name := range []string{"one", "an other"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for range 2 {
					testkit.Check(t, func(t *rapid.T) { rapid.Int().Draw(t, "number") })
				}
			})
		}
	},
	"bubble": func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			testkit.Check(t, func(t *rapid.T) { rapid.Int().Draw(t, "number") })
		})
	},
	"fails": func(t *testing.T) {
		t.Run("a number", func(t *testing.T) {
			testkit.Check(t, func(t *rapid.T) {
				if n := rapid.IntRange(0, 1000).Draw(t, "number"); n > 900 {
					t.Fatalf("%d is too large", n)
				}
			})
		})
	},
	"rounds": func(t *testing.T) {
		t.Run("parallel", func(t *testing.T) {
			for _, name := range []string{"a", "b"} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					rounds(t, 4*100)
				})
			}
		})
	},
	"random": func(t *testing.T) { t.Logf("drew %d", testkit.Random(t).Uint64()) },
	"parts": func(t *testing.T) {
		shared := testkit.Share(t)
		server := func(refuses bool) {
			shared.Helper()
			if refuses {
				shared.Fatal("refused")
			}
		}
		shared.Cleanup(func() { shared.Log("the server ended") })
		shared.Part("first", func(*testing.T) { server(false) })
		shared.Part("second", func(*testing.T) { server(true) })
		shared.Part("third", func(*testing.T) { server(false) })
	},
	"too few": func(t *testing.T) { rounds(t, 5000) },
}

// rounds draws until it has drawn some number of values, of which none may come twice.
func rounds(t *testing.T, enough int) {
	drawn := map[[48]bool]bool{}
	missing := func() string {
		if len(drawn) < enough {
			return fmt.Sprintf("%d of %d values were drawn", len(drawn), enough)
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		v := [48]bool(rapid.SliceOfN(rapid.Bool(), 48, 48).Draw(t, "bits")) // rapid likes small numbers, but draws each bit evenly
		if drawn[v] {
			t.Fatalf("%v comes again", v)
		}
		drawn[v] = true
	})
}

func TestSubject(t *testing.T) {
	name := os.Getenv("TESTKIT_SUBJECT")
	if name == "" {
		t.Skip("for the processes that other tests start")
	}
	subjects[name](t)
}
