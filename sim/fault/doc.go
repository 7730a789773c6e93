// SPDX-License-Identifier: Apache-2.0

// Package fault is what may go wrong in a simulated world: a file per sort of fault.
//
// It knows for each kind whom it may befall, how to draw one, whom it excuses from doing their work, how it begins and
// how it ends. It promises that a fault is plain data; that what it draws while it lasts comes from a stream of its
// own, so that leaving one out changes nothing in another; that faults of one target combine (see Backstage); and that
// once all have ended, disks, links, clocks, servers and processes are as able to work as before. What is lost in
// between stays lost.
//
// Start reading at Fault, then Kind, All, and Backstage.
package fault
