// SPDX-License-Identifier: Apache-2.0

package ending

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// What the kernel's header sock_diag.h and inet_diag.h have.
const (
	sockDiagByFamily = 20
	sockDestroy      = 21
	requestSize      = 56 // struct inet_diag_req_v2
	idOffset         = 8  // of struct inet_diag_sockid in it
	idSize           = 48
	answerID         = 4 // of struct inet_diag_sockid in struct inet_diag_msg
)

// socket is one as the kernel tells of it.
type socket struct {
	family uint8
	id     [idSize]byte // struct inet_diag_sockid
}

// to is what it is connected to; port 0 if it is not.
func (s *socket) to() netip.AddrPort {
	port := binary.BigEndian.Uint16(s.id[2:])
	address := s.id[20:36]
	if s.family == unix.AF_INET {
		address = address[:4]
	}
	a, _ := netip.AddrFromSlice(address)
	return netip.AddrPortFrom(a.Unmap(), port)
}

// cookie is the number that programs know it by.
func (s *socket) cookie() uint64 { return binary.NativeEndian.Uint64(s.id[40:]) }

// diag is a conversation with the kernel about sockets of one network namespace.
type diag struct {
	fd  int
	buf []byte
}

// patience bounds a wait for the kernel, which answers at once or not at all.
const patience = 5 * time.Second

// openDiag begins one, about the namespace of the calling thread.
func openDiag() (*diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("ask for sockets (CONFIG_INET_DIAG): %w", err)
	}
	wait := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, errors.Join(fmt.Errorf("ask for sockets: %w", err), unix.Close(fd))
	}
	return &diag{fd, make([]byte, 1<<16)}, nil
}

func (d *diag) close() { _ = unix.Close(d.fd) } // nothing was written that could be lost

func (d *diag) send(kind, flags uint16, family, protocol uint8, id *[idSize]byte) error {
	b := make([]byte, unix.NLMSG_HDRLEN+requestSize)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags|unix.NLM_F_REQUEST)
	r := b[unix.NLMSG_HDRLEN:]
	r[0], r[1] = family, protocol
	binary.NativeEndian.PutUint32(r[4:], ^uint32(0)) // in every state
	if id != nil {
		copy(r[idOffset:], id[:])
	}
	return unix.Sendto(d.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// each calls f with the messages of an answer until it ends.
func (d *diag) each(f func(body []byte)) error {
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if err != nil {
			return err
		}
		for b := d.buf[:n]; len(b) >= unix.NLMSG_HDRLEN; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < unix.NLMSG_HDRLEN || size > len(b) {
				return fmt.Errorf("a message of %d bytes within %d", size, len(b))
			}
			body := b[unix.NLMSG_HDRLEN:size]
			switch binary.NativeEndian.Uint16(b[4:]) {
			case unix.NLMSG_DONE:
				return nil
			case unix.NLMSG_ERROR:
				if len(body) < 4 {
					return errors.New("an error that lacks its number")
				}
				if e := int32(binary.NativeEndian.Uint32(body)); e != 0 {
					return unix.Errno(-e)
				}
				return nil
			default:
				f(body)
			}
			b = b[min(len(b), (size+3)&^3):]
		}
	}
}

// list gives all sockets of a family and protocol.
func (d *diag) list(family, protocol uint8) (out []socket, err error) {
	if err := d.send(sockDiagByFamily, unix.NLM_F_DUMP, family, protocol, nil); err != nil {
		return nil, err
	}
	err = d.each(func(body []byte) {
		if len(body) >= answerID+idSize {
			out = append(out, socket{body[0], [idSize]byte(body[answerID:])})
		}
	})
	return out, err
}

// destroy ends a socket: who uses it is told that its connection was aborted. One that is gone is as good.
func (d *diag) destroy(s socket, protocol uint8) error {
	if err := d.send(sockDestroy, unix.NLM_F_ACK, s.family, protocol, &s.id); err != nil {
		return err
	}
	if err := d.each(func([]byte) {}); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
