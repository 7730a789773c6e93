// SPDX-License-Identifier: Apache-2.0

// Package keep keeps objects of an API server as they shall be, for those who say object by object what to write: what is shown of them
// (Store), and who looks at those that changed and writes what differs (Keeper).
//
// It writes as many at once as it was told, leaves a server alone that fails, gives way to those who overwrite what it wrote, and takes
// the answer to a write for more than a watch that is behind. It decides nothing about objects. Start reading at Desk.
package keep
