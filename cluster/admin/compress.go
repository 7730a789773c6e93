// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"compress/gzip"
	"errors"
	"io"

	"connectrpc.com/connect"
)

// errInflated is what a message ends with that is larger than it may be once it is decompressed.
var errInflated = errors.New("it is too large once it is decompressed")

// gzipUpTo decompresses messages of so many bytes. The library throws away what a larger one has beyond that, to say how large it is, which of a
// MiB that stands for a GiB takes seconds of a processor.
func gzipUpTo(most int) connect.HandlerOption {
	return connect.WithCompression("gzip",
		func() connect.Decompressor { return &inflater{most: int64(most)} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) },
	)
}

// inflater is a connect.Decompressor of gzip that gives one byte more than a message may have, by which the library notices, and ends.
type inflater struct {
	gzip.Reader
	most, left int64
}

// Reset implements connect.Decompressor.
func (i *inflater) Reset(from io.Reader) error {
	i.left = i.most + 1
	return i.Reader.Reset(from)
}

// Read implements connect.Decompressor.
func (i *inflater) Read(p []byte) (int, error) {
	if i.left <= 0 {
		return 0, errInflated
	}
	n, err := i.Reader.Read(p[:min(int64(len(p)), i.left)])
	i.left -= int64(n)
	return n, err
}
