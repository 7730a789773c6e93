// SPDX-License-Identifier: Apache-2.0

package birdtest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// ask speaks BIRD's control protocol: lines begin with a code of four digits, which a line without one continues; a
// minus after the code announces more, and a code that begins with 0, 8 or 9 ends the answer, the latter two as errors.
func (b *Bird) ask(line string) (string, error) {
	deadline := time.Now().Add(patience)
	conn, err := net.DialTimeout("unix", b.file("ctl"), patience)
	for errors.Is(err, syscall.EAGAIN) && time.Now().Before(deadline) { // BIRD's queue is short, and watchers are many
		time.Sleep(time.Millisecond)
		conn, err = net.DialTimeout("unix", b.file("ctl"), patience)
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	if _, err := answer(r); err != nil { // the greeting
		return "", err
	}
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	return answer(r)
}

func answer(r *bufio.Reader) (string, error) {
	var out strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		line = strings.TrimSuffix(line, "\n")
		if !hasCode(line) {
			out.WriteString(strings.TrimPrefix(line, " ") + "\n")
			continue
		}
		out.WriteString(line[5:] + "\n")
		if line[4] == '-' {
			continue
		}
		switch line[0] {
		case '0':
			return out.String(), nil
		case '8', '9':
			return "", errors.New(line[5:])
		}
	}
}

func hasCode(line string) bool {
	if len(line) < 5 || (line[4] != ' ' && line[4] != '-') {
		return false
	}
	for _, c := range line[:4] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
