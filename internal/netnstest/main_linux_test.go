// SPDX-License-Identifier: Apache-2.0

package netnstest_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/netnstest"
)

func TestMain(m *testing.M) { os.Exit(netnstest.Main(m)) }

func TestMainHasALoopbackAndNothingElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces")
	}
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.DialTimeout("tcp", l.Addr().String(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := net.DialTimeout("tcp", "192.0.2.1:80", 20*time.Second); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("a call to nowhere: %v", err)
	}
}
