// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"slices"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// What the record holds in order comes out in one order, whichever build sorted it.
func TestOrdersOfTheRecordTellAllApart(t *testing.T) {
	testkit.TellsApart(t, compareSpecs)
	testkit.TellsApart(t, compareClosing)
	testkit.TellsApart(t, Probed.compare)
	testkit.TellsApart(t, Revision.Compare)
}

// The identity of what has a key more than once hangs on nothing but the order in which it was given, however many there are.
func TestIdentitiesHangOnNoSort(t *testing.T) {
	var info []KV
	for i := range 64 {
		info = append(info, KV{fmt.Sprint("key-", i%2), fmt.Sprintf("%02d", i)})
	}
	inOrder := slices.Concat(everyOther(info, 0), everyOther(info, 1))
	if got, want := IdentityOf("drv", info), IdentityOf("drv", inOrder); got != want {
		t.Errorf("%s, and in order %s", got, want)
	}
}

func everyOther(list []KV, from int) (out []KV) {
	for i := from; i < len(list); i += 2 {
		out = append(out, list[i])
	}
	return out
}
