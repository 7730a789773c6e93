// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"
)

// Of one exchange with HAProxy. Its answers are as long as it has servers, some hundred bytes each.
const (
	socketTimeout = 5 * time.Second
	longestAnswer = 32 << 20
)

// Runtime is HAProxy's runtime API: a line of commands with semicolons between them, and what HAProxy says to all of
// them. Errors: nothing is known of what the line did, except with ErrUnreachable.
type Runtime interface {
	Ask(ctx context.Context, line string) (string, error)
}

// ErrUnreachable says that HAProxy has not read a byte.
var ErrUnreachable = errors.New("HAProxy cannot be reached")

// Socket is the stats socket of an HAProxy on this machine: the path that `stats socket PATH level admin` names.
type Socket string

// Ask implements Runtime. It opens a connection each time, as HAProxy wants it: after a reload the path leads to the new
// process.
func (s Socket) Ask(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, socketTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", string(s))
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w: %w; let the group of this process open it: `stats socket %s mode 660 group GROUP level admin`", ErrUnreachable, err, string(s))
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w; is it running, with `stats socket %s level admin`?", ErrUnreachable, err, string(s))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // wakes up what waits below
	defer stop()
	answer, err := exchange(conn, line)
	if err = errors.Join(err, conn.Close()); err != nil {
		return "", fmt.Errorf("ask HAProxy at %s to %s: %w", string(s), verb(line), err)
	}
	return answer, nil
}

func exchange(conn net.Conn, line string) (string, error) {
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, longestAnswer+1))
	switch {
	case err != nil:
		return "", err
	case len(answer) > longestAnswer:
		return "", fmt.Errorf("the answer is longer than %d bytes", longestAnswer)
	case len(answer) == 0:
		return "", errors.New("it hung up without an answer") // there is a newline at least
	}
	return string(answer), nil
}

// verb is a command without what it is about, for errors.
func verb(line string) string {
	words := strings.Fields(line)
	return strings.Join(words[:min(2, len(words))], " ")
}
