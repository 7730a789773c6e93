// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"

	"golang.org/x/sys/unix"
)

// cause names the kind of a failure, without what differs from request to request.
func cause(err error) string {
	var errno unix.Errno
	switch {
	case errors.Is(err, ErrTimeout):
		return ErrTimeout.Error()
	case errors.As(err, &errno):
		return errno.Error()
	default:
		return err.Error()
	}
}
