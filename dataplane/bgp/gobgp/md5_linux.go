// SPDX-License-Identifier: Apache-2.0

package gobgp

import "golang.org/x/sys/unix"

// md5Works says whether the kernel signs TCP segments (RFC 2385).
func md5Works() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	sig := unix.TCPMD5Sig{Keylen: 1, Key: [80]byte{'x'}}
	sig.Addr.Family = unix.AF_INET
	copy(sig.Addr.Data[:], []byte{0, 0, 127, 0, 0, 1}) // port, then 127.0.0.1
	return unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, &sig) == nil
}
