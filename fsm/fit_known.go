// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"reflect"
	"slices"

	"fairlead.io/fairlead/fsm/wire"
)

// Bounds came after records, some of which have longer texts. Who says that the node of such a boot is down, which endpoints a Service has
// now whose sharing key is as long, or that it is to go, has to name what is there.

// Fit is the Fit of the package, but a text that the record has of what the command names may be as long as it is there.
func (v *View) Fit(p Proposal) (bytes int, err error) { return p.fit(v.known(p.Command)) }

// EncodeEntry is the EncodeEntry of the package for commands that this view finds Fit.
func (v *View) EncodeEntry(epoch Epoch, proposals []Proposal) ([]byte, error) {
	return encodeEntry(epoch, proposals, v.known)
}

// known tells of texts whether the record has them of something that a command names. It looks when it is asked, which few commands come to.
func (v *View) known(c Command) func(text string) bool {
	var rows [][]byte
	looked := false
	return func(text string) bool {
		if !looked {
			looked, rows = true, v.named(c)
		}
		whole := append(binary.AppendUvarint(nil, uint64(len(text))), text...) // as a field has it
		return slices.ContainsFunc(rows, func(row []byte) bool { return bytes.Contains(row, whole) })
	}
}

// named encodes the records that a command names: by a key that is one of its texts or addresses. Who has an address is there as long as
// that, with all that the address has of it. Lists are not looked through: what they have is of many things, or new.
func (v *View) named(c Command) (rows [][]byte) {
	eachName(reflect.ValueOf(c), func(name string) {
		for t := range v.rows.tables {
			r, ok := find[Record](v.rows, t, name)
			if !ok {
				continue
			}
			if row, err := wire.Append(nil, r); err == nil {
				rows = append(rows, row)
			}
		}
	})
	return rows
}

// eachName yields the texts and addresses of a command that are in no list.
func eachName(v reflect.Value, yield func(string)) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			yield(v.String())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachName(v.Elem(), yield)
		}
	case reflect.Struct:
		switch at := v.Interface().(type) {
		case netip.Addr:
			yield(at.String())
			return
		case netip.Prefix:
			yield(at.String())
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachName(v.Field(i), yield)
			}
		}
	}
}
