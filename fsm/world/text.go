// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"net/netip"
	"reflect"
	"unicode/utf8"
)

// MaxText is how long a text of an object may be, in bytes, for the record to take it. That of a ConfigMap, which is a file, may be as long as
// a cluster lets it.
const MaxText = 64 << 10

// Unfit finds a text in an object, to which there is a pointer, that the record cannot take, and tells why: it is not UTF-8, or too long.
// API servers take any bytes as the value of an annotation.
func Unfit(object any) (text, why string, found bool) {
	most := MaxText
	if _, file := object.(*ConfigMap); file {
		most = 0
	}
	return unfit(reflect.ValueOf(object), most)
}

func unfit(v reflect.Value, most int) (text, why string, found bool) {
	switch v.Kind() {
	case reflect.String:
		why = UnfitText(v.String(), most)
		return v.String(), why, why != ""
	case reflect.Pointer:
		if !v.IsNil() {
			return unfit(v.Elem(), most)
		}
	case reflect.Slice, reflect.Array:
		if !holdsText(v.Type().Elem().Kind()) {
			return "", "", false
		}
		for i := range v.Len() {
			if text, why, found = unfit(v.Index(i), most); found {
				return text, why, true
			}
		}
	case reflect.Struct:
		switch at := v.Interface().(type) {
		case netip.Addr:
			why = UnfitText(at.Zone(), most)
			return at.Zone(), why, why != ""
		case netip.Prefix:
			return "", "", false
		}
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if text, why, found = unfit(v.Field(i), most); found {
				return text, why, true
			}
		}
	}
	return "", "", false
}

// holdsText tells whether values of a kind may have texts in them.
func holdsText(k reflect.Kind) bool {
	switch k {
	case reflect.String, reflect.Pointer, reflect.Slice, reflect.Array, reflect.Struct:
		return true
	}
	return false
}

// UnfitText tells why the record cannot take a text of so many bytes at most, 0 for any number; empty if it can.
func UnfitText(s string, most int) string {
	switch {
	case most > 0 && len(s) > most:
		return fmt.Sprintf("%d bytes, at most %d are taken", len(s), most)
	case !utf8.ValidString(s):
		return fmt.Sprintf("%.64q is not UTF-8", s)
	}
	return ""
}
