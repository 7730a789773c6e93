// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// Link finds the router at the other end of a link, and has it find us, while Run runs.
type Link interface {
	// Neighbour is the router's link-local address, with the interface as its zone.
	Neighbour() (netip.Addr, error)
	Run(ctx context.Context)
}

// links are those that peers without an address are behind, by interface. They are open while Run runs.
type links struct {
	open    func(name string, changed func()) Link
	changed func() // Neighbour of some link gives something else

	mu    sync.Mutex
	links map[string]openLink
	news  chan struct{} // of capacity 1: links has others
}

type openLink struct {
	Link
	ctx   context.Context
	close context.CancelFunc
}

func newLinks(open func(name string, changed func()) Link, changed func()) *links {
	return &links{open: open, changed: changed, links: map[string]openLink{}, news: make(chan struct{}, 1)}
}

// want opens the links behind interfaces, and closes all others.
func (l *links) want(names []string) {
	if l.open == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, link := range l.links {
		if !slices.Contains(names, name) {
			link.close()
			delete(l.links, name)
		}
	}
	for _, name := range names {
		if _, there := l.links[name]; !there {
			ctx, stop := context.WithCancel(context.Background())
			l.links[name] = openLink{l.open(name, l.changed), ctx, stop}
		}
	}
	signal(l.news)
}

// find gives the neighbour behind an interface that is wanted.
func (l *links) find(name string) (netip.Addr, error) {
	l.mu.Lock()
	link, there := l.links[name]
	l.mu.Unlock()
	if !there {
		return netip.Addr{}, errNoLinks
	}
	return link.Neighbour()
}

// run has links find neighbours until ctx ends.
func (l *links) run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	defer l.want(nil)
	running := map[context.Context]bool{}
	for {
		l.mu.Lock()
		for _, link := range l.links {
			if !running[link.ctx] {
				running[link.ctx] = true
				all.Go(func() { link.Run(link.ctx) })
			}
		}
		l.mu.Unlock()
		maps.DeleteFunc(running, func(c context.Context, _ bool) bool { return c.Err() != nil })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.news:
		}
	}
}
