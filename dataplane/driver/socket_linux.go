// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpAfter makes the kernel give a connection up when what was written stays unconfirmed for so long (RFC 5482): a
// kept connection to a machine that died does not swallow one call after another, and nothing is delivered much later.
func giveUpAfter(d time.Duration, address string, c syscall.RawConn) error {
	var err error
	if controlErr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	}); controlErr != nil {
		return controlErr
	}
	if err != nil {
		return fmt.Errorf("set TCP_USER_TIMEOUT of the connection to %s: %w", address, err)
	}
	return nil
}
