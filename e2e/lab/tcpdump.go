// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/testkit"
)

// Dump is what tcpdump says that a neighbour hears: at which card each address is. It is not written by those who send.
type Dump struct {
	mu     sync.Mutex
	claims []Claim
	ready  bool
}

// Dump runs tcpdump at a neighbour's card until the test ends.
func (n *Neighbour) Dump() *Dump {
	t := n.segment.lab.t
	t.Helper()
	cmd := n.In.Command(birdtest.Find(t, "tcpdump"), "--immediate-mode", "-l", "-n", "-e", "-tt", "-i", "data", "arp or icmp6")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lifeline.Start(cmd); err != nil {
		t.Fatalf("tcpdump: %v", err)
	}
	d := &Dump{}
	var reading sync.WaitGroup
	reading.Go(func() { d.read(out) })
	reading.Go(func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "listening on") {
				d.mu.Lock()
				d.ready = true
				d.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		reading.Wait()
		_ = cmd.Wait() // killed
	})
	testkit.Until(t, "tcpdump listens", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.ready
	})
	return d
}

// What tcpdump prints of an ARP packet, in which the sender says where it is itself, and of a neighbor advertisement. It begins with
// the kernel's time stamp.
var (
	sender    = regexp.MustCompile(`^(\d+)\.(\d{6}) (\S+) > `)
	reply     = regexp.MustCompile(`: Reply (\S+) is-at (\S+),`)
	request   = regexp.MustCompile(`: Request who-has .* tell (\S+),`)
	advertise = regexp.MustCompile(`neighbor advertisement, tgt is (\S+),`)
)

// claimIn reads a line of tcpdump's.
func claimIn(line string) (c Claim, ok bool) {
	from := sender.FindStringSubmatch(line)
	if from == nil {
		return c, false
	}
	seconds, _ := strconv.ParseInt(from[1], 10, 64) // they are digits
	micros, _ := strconv.ParseInt(from[2], 10, 64)
	c.At, c.MAC = time.Unix(seconds, micros*1000), from[3]
	said := ""
	if m := reply.FindStringSubmatch(line); m != nil {
		said, c.MAC = m[1], m[2]
	}
	for _, says := range []*regexp.Regexp{request, advertise} {
		if m := says.FindStringSubmatch(line); m != nil {
			said = m[1]
		}
	}
	var err error
	c.Address, err = netip.ParseAddr(said)
	return c, err == nil
}

func (d *Dump) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if c, ok := claimIn(lines.Text()); ok {
			d.mu.Lock()
			d.claims = append(d.claims, c)
			d.mu.Unlock()
		}
	}
}

// Turns are the cards that were said to have an address since a time, as Wire.Turns has them.
func (d *Dump) Turns(a netip.Addr, since time.Time) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return turns(slices.DeleteFunc(slices.Clone(d.claims), func(c Claim) bool { return c.Address != a || c.At.Before(since) }))
}
