// SPDX-License-Identifier: Apache-2.0

package kit

// Result is how a check ended.
type Result string

// How a check ends.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped" // it needs what failed, or the driver does not have it
)

// Check is one question to a driver.
type Check struct {
	Name string `json:"name"`
	// Section of the protocol's specification that says so.
	Section string `json:"section"`
	Result  Result `json:"result"`
	// What a driver has to do.
	What string `json:"what"`
	// Why it failed or was skipped; else empty, or a remark.
	Why string `json:"why"`
	// Remedy is what to do about a failure; else empty.
	Remedy string `json:"remedy"`
	TookMs int64  `json:"tookMs"`
}

// Report is what Test found out.
type Report struct {
	URL     string  `json:"url"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Checks  []Check `json:"checks"`
}

// add takes in a check.
func (r *Report) add(c Check) {
	switch c.Result {
	case Passed:
		r.Passed++
	case Failed:
		r.Failed++
	case Skipped:
		r.Skipped++
	}
	r.Checks = append(r.Checks, c)
}
