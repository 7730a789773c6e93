// SPDX-License-Identifier: Apache-2.0

package l2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/dataplane/l2"
)

// cards is an edge whose links hear nothing and know their groups.
type cards struct {
	links []l2.Interface

	mu     sync.Mutex
	refuse error // of all that join
	tries  int
	joined map[string]map[netip.Addr]bool // by link
	change func()
}

func (c *cards) Interfaces() ([]l2.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.links), nil
}

func (c *cards) Watch(ctx context.Context, changed func()) error {
	c.mu.Lock()
	c.change = changed
	c.mu.Unlock()
	changed()
	<-ctx.Done()
	return ctx.Err()
}

func (c *cards) Open(i l2.Interface) (l2.Port, error) {
	return card{of: c, name: i.Name, done: make(chan struct{}), once: &sync.Once{}}, nil
}

// set replaces the links.
func (c *cards) set(links ...l2.Interface) {
	c.mu.Lock()
	c.links = links
	c.mu.Unlock()
	c.change()
	synctest.Wait()
}

// fail has all that join fail, or none.
func (c *cards) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = err
}

// groups lists those of a link, in order.
func (c *cards) groups(link string) (out []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.joined[link] {
		out = append(out, g)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

type card struct {
	of   *cards
	name string
	done chan struct{}
	once *sync.Once
}

func (p card) Receive([]byte) (int, error) {
	<-p.done
	return 0, errors.New("closed")
}

func (p card) Send([]byte) error { return nil }

func (p card) Join(group netip.Addr) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.tries++
	if p.of.joined[p.name][group] {
		return errors.New("joined twice")
	}
	if p.of.refuse != nil {
		return p.of.refuse
	}
	if p.of.joined[p.name] == nil {
		p.of.joined[p.name] = map[netip.Addr]bool{}
	}
	p.of.joined[p.name][group] = true
	return nil
}

func (p card) Leave(group netip.Addr) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !p.of.joined[p.name][group] {
		return errors.New("not joined")
	}
	delete(p.of.joined[p.name], group)
	return nil
}

func (p card) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// bubble is the clock of synctest.
type bubble struct{ from time.Time }

func (b bubble) Now() time.Duration                     { return time.Since(b.from) }
func (b bubble) After(d time.Duration) <-chan time.Time { return time.After(d) }

// answering runs an L2 over links for as long as f does. Its log goes to the buffer.
func answering(t *testing.T, c *cards, f func(l *l2.L2, log *bytes.Buffer, metrics *prometheus.Registry)) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		metrics := prometheus.NewRegistry()
		c.joined = map[string]map[netip.Addr]bool{}
		l, err := l2.New(l2.Options{Edge: c, Clock: bubble{time.Now()}, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = l.Run(ctx) })
		defer running.Wait()
		defer cancel()
		synctest.Wait()
		f(l, &log, metrics)
	})
}

// grant gives leases of addresses, and of no others.
func grant(l *l2.L2, addresses ...string) {
	var leases []l2.Lease
	for i, a := range addresses {
		leases = append(leases, lease(netip.MustParseAddr(a), uint64(i+1)))
	}
	l.Grant(l.Renew().Sent, leases)
}

func TestGroupsAreJoinedWhereTheirAddressesAreAnsweredFor(t *testing.T) {
	t.Parallel()
	data, management := eth("eth0", true, "2001:db8::1/64"), eth("eth1", true, "2001:db8:1::1/64")
	c := &cards{links: []l2.Interface{data, management}}
	answering(t, c, func(l *l2.L2, _ *bytes.Buffer, _ *prometheus.Registry) {
		are := func(when, link string, want ...string) {
			t.Helper()
			var groups []netip.Addr
			for _, g := range want {
				groups = append(groups, netip.MustParseAddr(g))
			}
			if got := c.groups(link); !slices.Equal(got, groups) {
				t.Errorf("%s: %s is in %v, not in %v", when, link, got, groups)
			}
		}
		const of7, of8 = "ff02::1:ff00:7", "ff02::1:ff00:8"
		grant(l, "192.0.2.50", "2001:db8::7", "2001:db8:1::8")
		are("granted", "eth0", of7)
		are("granted", "eth1", of8)
		grant(l, "2001:db8::7", "2001:db8::1:0:0:7") // which share a group
		are("shared", "eth0", of7)
		are("shared", "eth1")
		grant(l, "2001:db8::1:0:0:7")
		are("one of two left", "eth0", of7)
		c.set(eth("eth0", false), management)
		are("no carrier", "eth0", of7)
		are("no carrier", "eth1")
		c.set(eth("eth0", true, "2001:db8:2::1/64"), management)
		are("in no link's network", "eth0", of7)
		are("in no link's network", "eth1", of7)
		c.set(eth("eth0", true, "2001:db8:2::1/64"), eth("eth1", true, "2001:db8::1/64"))
		are("the network moved", "eth0")
		are("the network moved", "eth1", of7)
		grant(l)
		are("nothing left", "eth1")
	})
}

// Renewals come in twelve times a second.
func TestGroupsThatCannotBeJoinedAreSaidOnce(t *testing.T) {
	t.Parallel()
	c := &cards{links: []l2.Interface{eth("eth0", true, "2001:db8::1/64")}, refuse: errors.New("no memory")}
	answering(t, c, func(l *l2.L2, log *bytes.Buffer, metrics *prometheus.Registry) {
		renew := func(addresses ...string) {
			for range 48 {
				grant(l, addresses...)
				time.Sleep(time.Second / 12)
			}
		}
		said := func(when string, lines, missing int) {
			t.Helper()
			if n := strings.Count(log.String(), "level=ERROR"); n != lines {
				t.Errorf("%s: %d lines, not %d:\n%s", when, n, lines, log)
			}
			want := fmt.Sprintf("# HELP fairlead_l2_groups_missing Groups that could not be joined so far: neighbours may not be able to ask for their addresses.\n"+
				"# TYPE fairlead_l2_groups_missing gauge\nfairlead_l2_groups_missing %d\n", missing)
			if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "fairlead_l2_groups_missing"); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		renew("2001:db8::7", "2001:db8::8")
		said("two fail", 1, 2)
		if !strings.Contains(log.String(), "interface=eth0 groups=2 first=ff02::1:ff00:7") {
			t.Errorf("does not say which:\n%s", log)
		}
		if c.tries < 6 || c.tries > 10 {
			t.Errorf("tried %d times in four seconds, not about once a second each", c.tries)
		}
		renew("2001:db8::7", "2001:db8::8", "2001:db8::9")
		said("a third fails", 2, 3)
		c.fail(nil)
		renew("2001:db8::7", "2001:db8::8", "2001:db8::9")
		said("there is memory", 2, 0)
		if got := c.groups("eth0"); len(got) != 3 {
			t.Errorf("joined later: %v", got)
		}
		c.fail(errors.New("no memory"))
		renew()
		renew("2001:db8::7")
		said("one that was away fails", 3, 1)
	})
}
