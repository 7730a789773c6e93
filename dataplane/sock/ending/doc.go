// SPDX-License-Identifier: Apache-2.0

// Package ending ends sockets whose backend left (balancing §16.3): one of datagrams that is connected would go on sending to where
// nobody is, in silence. The kernel is asked for them, namespace by namespace (sock_diag), and told to abort those that programs gave
// that backend. Start reading at Ender.End.
package ending
