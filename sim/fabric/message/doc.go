// SPDX-License-Identifier: Apache-2.0

// Package message is what speakers and simulated switches say to each other: BGP, short of its bytes.
//
// It knows the messages of RFC 4271 with what ADD-PATH (RFC 7911), graceful restart (RFC 4724, RFC 8538) and its
// long-lived kind (RFC 9494) add, in an encoding of its own that both ends share. It promises that Decode gives what
// Encode took, that what is malformed is an error, and that no message is longer than BGP allows. It judges nothing
// else: that is the switch's part. Start reading at Message, then Update.
package message
