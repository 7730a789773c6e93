// SPDX-License-Identifier: Apache-2.0

// Package records holds the documents that RecordService answers with: what `-o json` prints and what scripts
// may rely on. It is the stable face of the record, whose own structures change between releases.
//
// Rules of the documents: every document has a name, unique in its kind, by which Get and Describe find it.
// Fields are never renamed or retyped and keep their meaning; new ones may come. Fields are present also when
// empty; lists are never null; an object that is absent is null. Durations are whole milliseconds, in fields
// that end in Ms. A revision is {"epoch":…,"index":…}. Names stand where the record has numbers.
//
// Start reading at Kinds, which also says what tables show.
package records
