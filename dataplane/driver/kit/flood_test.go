// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/kit"
)

// Whoever asks a driver without waiting for answers is read slowly: what he has at once is some 3,000 requests of 4 KiB, and 1,500 a second.
func TestRequestsWithoutEndAreReadSlowly(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, kit.ServerOptions{})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 4<<10) + "\r\n"
	begin := time.Now()
	go func() {
		_, _ = io.WriteString(conn, strings.Repeat(request+"\r\n", 5000)+request+"Connection: close\r\n\r\n") // reading tells
	}()
	answers, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(answers), "HTTP/1.1 "); n != 5001 {
		t.Errorf("%d answers", n)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("5,001 requests took %v", took)
	}
}
