// SPDX-License-Identifier: Apache-2.0

package disk

import "strconv"

// Error is why an operation failed. Its numbers are those of WASI preview 1 (errno).
type Error uint16

// None is success: operations return it instead of an error interface, because the caller hands the number on.
const (
	None        Error = 0
	Again       Error = 6 // from a sync that hangs: whoever waits asks once more
	Exists      Error = 20
	TooLarge    Error = 22
	Invalid     Error = 28
	IO          Error = 29
	IsDirectory Error = 31
	TooLong     Error = 37
	NoEntry     Error = 44
	NoSpace     Error = 51
	NoDirectory Error = 54
	NotEmpty    Error = 55
	Forbidden   Error = 76 // a path that leads out of the tree
)

// Error implements error.
func (e Error) Error() string {
	switch e {
	case None:
		return "no error"
	case Again:
		return "resource temporarily unavailable"
	case Exists:
		return "file exists"
	case TooLarge:
		return "file too large"
	case Invalid:
		return "invalid argument"
	case IO:
		return "input/output error"
	case IsDirectory:
		return "is a directory"
	case TooLong:
		return "name too long"
	case NoEntry:
		return "no such file or directory"
	case NoSpace:
		return "no space left on device"
	case NoDirectory:
		return "not a directory"
	case NotEmpty:
		return "directory not empty"
	case Forbidden:
		return "path leads out of the disk"
	}
	return "error " + strconv.Itoa(int(e))
}
