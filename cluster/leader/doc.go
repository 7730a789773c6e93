// SPDX-License-Identifier: Apache-2.0

// Package leader is what only the leader of the group does: it plans what the record shall hold next and operates
// what the record asks for outside.
//
// Planning is a pure function of what the sources show (as far as the evidence guard lets it be acted on), of the
// record and of nothing else. It is level-triggered: a missed event, a restart or a change of leader make no
// difference, and where nothing changed nothing is proposed. Operating is fenced: an attempt is committed before its
// effect and its outcome afterwards, so that whoever leads next knows what may still happen.
//
// Start reading at Plan, then Leader for the loop around it and Operator for calls outside.
package leader
