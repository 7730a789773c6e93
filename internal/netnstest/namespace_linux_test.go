// SPDX-License-Identifier: Apache-2.0

package netnstest_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/netnstest"
)

func TestNamespacesAreJoinedAndApart(t *testing.T) {
	a, b := netnstest.New(t, "a"), netnstest.New(t, "b")
	netnstest.Join(
		netnstest.Link{In: a, Name: "eth0", Addresses: []string{"192.0.2.1/24", "2001:db8::1/64"}},
		netnstest.Link{In: b, Name: "eth0", Addresses: []string{"192.0.2.2/24", "2001:db8::2/64"}},
	)
	for _, address := range []string{"192.0.2.2", "2001:db8::2"} {
		var l net.Listener
		if err := b.Do(func() (err error) {
			l, err = net.Listen("tcp", net.JoinHostPort(address, "80"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = io.WriteString(c, "hello") // the client tells
				c.Close()
			}
		}()
		var got []byte
		if err := a.Do(func() error {
			c, err := net.DialTimeout("tcp", net.JoinHostPort(address, "80"), 5*time.Second)
			if err != nil {
				return err
			}
			defer c.Close()
			got, err = io.ReadAll(c)
			return err
		}); err != nil || string(got) != "hello" {
			t.Fatalf("%s: %q, %v", address, got, err)
		}
	}
	a.SetSysctl("ipv4/ip_forward", "1")
	if got := b.Sysctl("ipv4/ip_forward"); got != "0" {
		t.Errorf("b forwards: %s", got)
	}
	if got := b.Run("ip", "-4", "address"); strings.Contains(got, "192.0.2.1/") {
		t.Errorf("b sees a's address:\n%s", got)
	}
	if _, err := a.Try("ip", "link", "show", "nothing"); err == nil {
		t.Error("a program that failed did not")
	}
}
