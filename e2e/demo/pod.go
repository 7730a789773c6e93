// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"fairlead.io/fairlead/e2e/demo/internal/load"
)

// servePod makes this program a pod: its value says as whom it answers.
const servePod = "FAIRLEAD_DEMO_POD"

// serve answers every connection with who we are, until the process is ended.
func serve(identity string) error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{Port: podPort})
	if err != nil {
		return err
	}
	return answerAll(l, identity, os.Stderr)
}

// answerAll is serve of a listener, until that is closed. What goes wrong with a connection is told, a line each.
func answerAll(l *net.TCPListener, identity string, trouble io.Writer) error {
	body := identity + "\n"
	answer := []byte(fmt.Sprintf("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if err := reply(conn, answer); err != nil {
				fmt.Fprintf(trouble, "%s %s: %v\n", time.Now().UTC().Format(stamp), conn.RemoteAddr(), err)
			}
		}()
	}
}

// slowest is how long a client may take to ask: longer than any waits for an answer.
const slowest = 2 * patientTimeout

// sentAgain is how a pod tells in its log that packets of an answer were lost, which clients do not see.
const sentAgain = "packets sent again"

func reply(conn *net.TCPConn, answer []byte) error {
	if err := conn.SetDeadline(time.Now().Add(slowest)); err != nil {
		return err
	}
	for r := bufio.NewReader(io.LimitReader(conn, 4<<10)); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
	}
	if _, err := conn.Write(answer); err != nil {
		return err
	}
	// The client closes first: whoever does keeps the connection's name for a minute, and clients never use one twice,
	// while the nodes between may.
	if _, err := io.Copy(io.Discard, conn); err != nil {
		return err
	}
	n, err := load.SentAgain(conn)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d %s", n, sentAgain)
	}
	return err
}

// identityOf is what a pod says of itself.
func identityOf(service, pod, node string) string {
	return strings.Join([]string{"fairlead-demo", service, pod, node}, " ")
}

// checkAnswer tells what is wrong with an answer that a pod of the service should have given, and which pod gave it.
func checkAnswer(service, body string) (pod string, err error) {
	words := strings.Fields(body)
	if len(words) != 4 || words[0] != "fairlead-demo" {
		return "", fmt.Errorf("answer of a stranger: %q", body)
	}
	if words[1] != service {
		return "", fmt.Errorf("answer of service %s, asked was %s", words[1], service)
	}
	return words[2] + " on " + words[3], nil
}
