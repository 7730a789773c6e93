// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/driver/kit"
)

// saysYes is a driver that has done whatever it is asked for.
func saysYes(token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		body := make([]byte, 1<<16)
		n, _ := r.Body.Read(body)
		var request struct {
			PodBackend struct {
				Pod struct{ Status struct{ PodIP string } }
			}
		}
		if err := json.Unmarshal(body[:n], &request); err != nil && n > 0 {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status": "Succ", "succ": true, "healthy": true, "backendAddr": request.PodBackend.Pod.Status.PodIP,
		})
	})
}

func TestDriverTestPrintsWhatADriverDoes(t *testing.T) {
	isolate(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(saysYes("Bearer s3cret"))
	defer s.Close()
	args := []string{"driver", "test", s.URL + "/v1", "--lb-spec", "name=edge", "--token-file", token}
	if got := fairlead(t, args...).mustPrint(t); !strings.Contains(got, "passed   ensureBackend ") || !strings.HasSuffix(got, "\n23 passed, 0 failed, 0 skipped\n") {
		t.Error(got)
	}
	var report kit.Report
	if err := json.Unmarshal([]byte(fairlead(t, append(args, "-o", "json")...).mustPrint(t)), &report); err != nil || report.Passed != 23 || len(report.Checks) != 23 {
		t.Errorf("%v %+v", err, report)
	}
}

// A driver that does not pass: the report all the same, one line on standard error, and exit status 1.
func TestDriverTestFailsWithItsReport(t *testing.T) {
	isolate(t)
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	got := fairlead(t, "driver", "test", s.URL, "-o", "json")
	var report kit.Report
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || report.Failed != 2 || got.code != exitFailed {
		t.Errorf("exit %d, %v, %+v", got.code, err, report)
	}
	ran{code: got.code, stderr: got.stderr}.mustFail(t, exitFailed, s.URL, "2 of 23 checks failed", "validateLoadBalancer (lbcf §3.4)", "answered 404", "serve POST at the URL")
	fairlead(t, "driver", "test", s.URL, "--driver-ca", "/nonexistent").mustFail(t, exitFailed, "/nonexistent")
}

func TestDriverTestTellsWrongUseFromFailure(t *testing.T) {
	isolate(t)
	for name, c := range map[string]struct{ args, want string }{
		"nothing": {"", "want URL"}, "no-url": {"driver.example:80", "http://"}, "two": {"http://h http://i", "want only URL"},
		"timeout": {"http://h --timeout 2m", "--timeout"}, "within": {"http://h --within 0s", "--within"}, "address": {"http://h --address a", "two or more"},
		"spec": {"http://h --lb-spec name", "--lb-spec"},
	} {
		t.Run(name, func(t *testing.T) {
			fairlead(t, append([]string{"driver", "test"}, strings.Fields(c.args)...)...).mustFail(t, exitUsage, c.want)
		})
	}
}

func TestDriverTestsAnswerIsDocumentedWithItsFields(t *testing.T) {
	page, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	if want := fields(reflect.TypeFor[kit.Report]()); !strings.Contains(string(page), want) {
		t.Errorf("%s has no %q", cliPage, want)
	}
}
