// SPDX-License-Identifier: Apache-2.0

package framelimit

const (
	prefaceLength = 24 // what a client says first (RFC 9113, section 3.4)
	headerLength  = 9  // of a frame (RFC 9113, section 4.1)

	frameHeaders      = 0x1
	frameWindowUpdate = 0x8
	frameContinuation = 0x9
)

const (
	// frameCost is what a frame costs: some microseconds. The server takes none of more than maxFrame bytes.
	frameCost = 1
	// requestCost is what a request costs that is refused at once.
	requestCost = 8
	// headerBytes of a request cost as much as a frame.
	headerBytes = 32
)

// ofRequest is what a request costs with a header of so many bytes.
func ofRequest(header int) int { return requestCost + header/headerBytes }

// follower follows the frames that a client sends, wherever what is read of them begins and ends.
type follower struct {
	skip   int // bytes of the preface or of a payload that are still to come
	header [headerLength]byte
	have   int // bytes of header
}

func newFollower() follower { return follower{skip: prefaceLength} }

// follow takes what comes next. It returns what the frames cost that began in it, and how many WINDOW_UPDATEs, which are not in that
// cost, were among them.
func (f *follower) follow(p []byte) (cost, updates int) {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		n := copy(f.header[f.have:], p)
		f.have += n
		p = p[n:]
		if f.have < headerLength {
			break
		}
		f.have = 0
		f.skip = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
		switch f.header[3] {
		case frameHeaders:
			cost += ofRequest(f.skip)
		case frameContinuation:
			cost += frameCost + f.skip/headerBytes
		case frameWindowUpdate:
			updates++
		default:
			cost += frameCost
		}
	}
	return cost, updates
}
