// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package connlimit

import (
	"net"
	"time"
)

func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }

func descriptors() (most uint64, limited bool) { return 0, false }
