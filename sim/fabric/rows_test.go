// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/fabric/message"
)

// The scripts are the rows that were measured with BIRD 2.0 and FRR 8.4: two speakers, one prefix, next hops .11 and .12.
//
//	switch make=bird|frr [none|plain]
//	connect a [restart=1 stale=600 | none] [med=100] [silent]   announces .11 and .12, unless silent
//	kill a | cut a | cease a | withdraw a .12 | announce a .11 .12
//	wait 3s
//	until .11          how long it takes until exactly these next hops are used , at most 120 s
//	gap 10s            how long the prefix was missing meanwhile
func TestASwitchDoesAsWasMeasured(t *testing.T) {
	datadriven.Walk(t, "testdata/rows", func(t *testing.T, path string) {
		r := &rows{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := r.run(t, d)
			r.peering.mustBeClean(t)
			return out
		})
	})
}

var prefix = netip.MustParsePrefix("203.0.113.10/32")

type rows struct{ peering *peering }

func hop(text string) (netip.Addr, uint32) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "."))
	if err != nil {
		panic(err)
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), uint32(n)
}

func (r *rows) run(t *testing.T, d *datadriven.TestData) string {
	if d.Cmd == "switch" {
		o := fabric.FRR("switch", switchASN)
		if d.HasArg("bird") {
			o = fabric.BIRD("switch", switchASN)
		}
		r.peering = newPeering(o)
		return ""
	}
	var args []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			args = append(args, a.Key)
		}
	}
	switch d.Cmd {
	case "wait":
		r.peering.pass(mustDuration(args[0]))
		return ""
	case "until":
		return r.until(strings.TrimPrefix(strings.Join(args, " "), "nothing"))
	case "gap":
		return r.gap(mustDuration(args[0]))
	case "connect":
		r.connect(t, d)
	default:
		r.speak(d.Cmd, r.peering.speakers[args[0]], args[1:])
	}
	return ""
}

func (r *rows) connect(t *testing.T, d *datadriven.TestData) {
	name := d.CmdArgs[0].Key
	number := func(key string, otherwise int) int {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &otherwise)
		}
		return otherwise
	}
	s := r.peering.connect(name, func(o *message.Open) {
		o.Restart.Time = time.Duration(number("restart", 1)) * time.Second
		o.Restart.Stale = time.Duration(number("stale", 600)) * time.Second
		o.Restart.Forwarding = !d.HasArg("unforwarding")
		if d.HasArg("none") {
			o.Restart = nil
		}
	})
	if !d.HasArg("silent") {
		for _, h := range []string{".11", ".12"} {
			a, id := hop(h)
			s.announce(prefix, id, a, uint32(number("med", 0)))
		}
		s.say(message.EndOfRIB{Family: 4}, message.EndOfRIB{Family: 6})
	}
	r.peering.pass(10 * time.Millisecond)
}

func (r *rows) speak(what string, s *speaker, args []string) {
	switch what {
	case "kill":
		s.kill()
	case "cut":
		s.cut()
	case "cease":
		s.say(message.Notification{Code: message.Cease, Subcode: message.PeerGone})
		s.cut()
	case "sync":
		s.say(message.EndOfRIB{Family: 4}, message.EndOfRIB{Family: 6})
	case "withdraw":
		_, id := hop(args[0])
		s.withdraw(prefix, id)
	case "announce":
		for _, h := range args {
			a, id := hop(h)
			s.announce(prefix, id, a, 0)
		}
	default:
		panic("unknown command " + what)
	}
}

func (r *rows) now() string {
	return strings.ReplaceAll(strings.Join(r.peering.hops(prefix), " "), "192.0.2", "")
}

// until tells how long it takes, roughly: as the measurements do.
func (r *rows) until(want string) string {
	begin := r.peering.world.Now()
	for r.now() != want {
		if r.peering.world.Now()-begin > 120*time.Second {
			return fmt.Sprintf("not within 2m0s, but %q\n", r.now())
		}
		r.peering.pass(5 * time.Millisecond)
	}
	return about(r.peering.world.Now()-begin) + "\n"
}

func about(d time.Duration) string {
	switch {
	case d <= 5*time.Millisecond:
		return "at once"
	case d < 100*time.Millisecond:
		return "within 100ms"
	}
	return d.Round(100 * time.Millisecond).String()
}

func (r *rows) gap(d time.Duration) string {
	missing := time.Duration(0)
	for range d / (5 * time.Millisecond) {
		r.peering.pass(5 * time.Millisecond)
		if r.now() == "" {
			missing += 5 * time.Millisecond
		}
	}
	if missing == 0 {
		return "never missing\n"
	}
	return "missing for " + about(missing) + "\n"
}

func mustDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}
