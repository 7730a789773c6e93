// SPDX-License-Identifier: Apache-2.0

package output_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

type answer struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
	fail  error
}

func (a answer) WriteTable(w io.Writer) error {
	if _, err := io.WriteString(w, "begun"); err != nil {
		return err
	}
	return a.fail
}

func print(t *testing.T, format string, v output.Tabler) string {
	t.Helper()
	var f output.Format
	if err := f.Set(format); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := f.Print(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPrintKeepsLargeNumbersAndArrows(t *testing.T) {
	v := answer{Name: "pending -> bound", Count: 1<<64 - 1}
	if got := print(t, "json", v); got != "{\n  \"name\": \"pending -> bound\",\n  \"count\": 18446744073709551615\n}\n" {
		t.Errorf("json %q", got)
	}
	if got := print(t, "yaml", v); got != "count: 18446744073709551615\nname: pending -> bound\n" {
		t.Errorf("yaml %q", got)
	}
}

func TestPrintThatFailsMidwayPrintsNothing(t *testing.T) {
	f, b := output.Table, strings.Builder{}
	if err := f.Print(&b, answer{fail: errors.New("broken")}); err == nil || b.Len() > 0 {
		t.Errorf("%v, printed %q", err, b.String())
	}
}

func TestFormatRefusesOtherNames(t *testing.T) {
	f := output.JSON
	if err := f.Set("xml"); err == nil || f != output.JSON || !strings.Contains(err.Error(), "table, json, yaml") {
		t.Errorf("%s, %v", f, err)
	}
}

func TestTablesKeepTheirColumnsWhateverTheCellsHold(t *testing.T) {
	var b strings.Builder
	if err := output.WriteRows(&b, []string{"A", "B"}, [][]string{{"x\ty\nz", "\x1b[31m"}, {"", "é"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "A       B\nx y z   ?[31m\n-       é\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	if err := output.WriteFields(&b, [2]string{"name", "a\nb"}, [2]string{"left out", ""}, [2]string{"x", "1"}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "name:  a b\nx:     1\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
