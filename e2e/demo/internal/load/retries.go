// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// secondTry tells whether the kernel sent anything twice.
func secondTry(conn syscall.Conn) (bool, error) {
	info, err := infoOf(conn)
	return err == nil && info.Total_retrans > 0, err
}

// SentAgain is how many packets of a connection this side sent again because they were lost. What the other side says it had
// already (RFC 2883) does not count: its acknowledgement was lost, which is the other side's to tell, or late, since somebody
// stood still.
func SentAgain(conn syscall.Conn) (int, error) {
	info, err := infoOf(conn)
	if err != nil {
		return 0, err
	}
	return sentAgain(info), nil
}

func sentAgain(info *unix.TCPInfo) int { return max(0, int(info.Total_retrans)-int(info.Dsack_dups)) }

func infoOf(conn syscall.Conn) (*unix.TCPInfo, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var info *unix.TCPInfo
	var failed error
	if err := raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("read TCP_INFO: %w", failed)
	}
	return info, nil
}
