// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// memberships are the multicast groups that a link is in. The kernel does their part: the card's filter, and telling
// switches that look into MLD.
//
// It charges each to the socket that joined, up to net.core.optmem_max, which is some hundred to some thousand groups.
// So there are as many sockets as it takes: each of them but the newest was full once, and one without groups is closed.
type memberships struct {
	link, namespace int

	mu      sync.Mutex
	sockets []*member
	by      map[netip.Addr]*member // who is in a group
	closed  bool
}

// member is a socket that is only in groups.
type member struct {
	fd     int
	groups int
	full   bool // it could not join, and left none since
}

// join joins a group; one that is joined stays so.
func (m *memberships) join(group netip.Addr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return net.ErrClosed
	}
	for m.by[group] == nil {
		s, err := m.roomyLocked()
		if err != nil {
			return err
		}
		err = s.set(unix.IPV6_JOIN_GROUP, m.link, group)
		switch {
		case err == nil:
			m.by[group] = s
			s.groups++
		case s.groups > 0 && (errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOBUFS)):
			s.full = true
		default: // a further socket would not help
			m.closeEmptyLocked(s)
			return err
		}
	}
	return nil
}

// leave leaves a group.
func (m *memberships) leave(group netip.Addr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.by[group]
	if s == nil {
		return unix.EADDRNOTAVAIL
	}
	err := s.set(unix.IPV6_LEAVE_GROUP, m.link, group) // fails only if it is in no such group
	delete(m.by, group)
	s.groups--
	s.full = false
	m.closeEmptyLocked(s)
	return err
}

// roomyLocked gives a socket that may have room.
func (m *memberships) roomyLocked() (*member, error) {
	if i := slices.IndexFunc(m.sockets, func(s *member) bool { return !s.full }); i >= 0 {
		return m.sockets[i], nil
	}
	s := &member{}
	err := netns.Do(m.namespace, func() (err error) {
		s.fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a socket for groups: %w", err)
	}
	m.sockets = append(m.sockets, s)
	return s, nil
}

func (m *memberships) closeEmptyLocked(s *member) {
	if s.groups == 0 {
		_ = unix.Close(s.fd) // nothing was written to it
		m.sockets = slices.DeleteFunc(m.sockets, func(o *member) bool { return o == s })
	}
}

// close leaves all groups, for good.
func (m *memberships) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, s := range m.sockets {
		errs = append(errs, unix.Close(s.fd))
	}
	m.sockets, m.by, m.closed = nil, nil, true
	return errors.Join(errs...)
}

func (s *member) set(option, link int, group netip.Addr) error {
	return unix.SetsockoptIPv6Mreq(s.fd, unix.IPPROTO_IPV6, option, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(link)})
}
