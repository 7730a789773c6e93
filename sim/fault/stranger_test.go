// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// As many strangers come as there are to be, from as many machines, and say what they are to; whose connection ends comes again a second later, and at
// the end all go.
func TestStrangersComeAgainAndGoAtTheEnd(t *testing.T) {
	for say, c := range map[string]struct{ hello, bytes int }{"nothing": {}, "": {}, "bytes": {bytes: 4}, "lies": {hello: len("a group of ours")}} {
		t.Run(say, func(t *testing.T) {
			play := newTheatre(1)
			defer play.Strike()
			from, open, came, said, hello := map[string]bool{}, map[*network.Conn]bool{}, 0, 0, 0
			play.Network.Listen("m1", start.RaftPort, func(conn *network.Conn) {
				from[conn.Peer()], open[conn], hello = true, true, len(conn.Hello())
				came++
				conn.Handle(func(b []byte) { said += len(b) }, func(bool) { delete(open, conn) })
			})
			f := Fault{Kind: "strangers", At: play.World.Now(), For: 10 * time.Second, On: []string{"m1"}, With: parameter.Values{"crowd": "30", "machines": "4"}}
			if say != "" {
				f.With.Set("say", say)
			}
			end, err := play.Begin(f)
			if err != nil {
				t.Fatal(err)
			}
			to := func(after time.Duration, want int) {
				t.Helper()
				if err := play.World.Run(f.At + after); err != nil {
					t.Fatal(err)
				}
				if len(open) != want {
					t.Errorf("after %s there are %d connections, want %d", after, len(open), want)
				}
			}
			to(1900*time.Millisecond, 30)
			if len(from) != 4 || hello != c.hello || said != 30*c.bytes {
				t.Errorf("they come from %v, began with %d bytes and said %d", from, hello, said)
			}
			for conn := range open {
				conn.Reset()
				delete(open, conn)
			}
			to(2800*time.Millisecond, 0)
			to(3100*time.Millisecond, 30)
			end()
			to(9*time.Second, 0)
			if came != 60 {
				t.Errorf("%d connections were made", came)
			}
		})
	}
}
