// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// stream tells how many bytes were written to a connection, and how many of them the other end's TCP has confirmed.
func stream(fd int) (written, confirmed uint64, err error) {
	const tries = 3 // what is confirmed between two looks would count twice; more than is written is only waited for longer
	for range tries {
		before, err := tcpConfirmed(fd)
		if err != nil {
			return 0, 0, err
		}
		queued, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		if err != nil {
			return 0, 0, fmt.Errorf("ask for the send queue: %w", err)
		}
		if confirmed, err = tcpConfirmed(fd); err != nil {
			return 0, 0, err
		}
		if written = confirmed + uint64(queued); before == confirmed {
			break
		}
	}
	return written, confirmed, nil
}

func tcpConfirmed(fd int) (uint64, error) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, fmt.Errorf("ask for the state of tcp: %w", err)
	}
	return info.Bytes_acked, nil
}
