// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

func setUserTimeout(c *net.TCPConn, within time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(within.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}

// descriptors is how many this process may have.
func descriptors() (most uint64, limited bool) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	return limit.Cur, true
}
