// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"fairlead.io/fairlead/dataplane/driver"
)

// remedy is what to do about a failure: of the protocol, or of the check.
func remedy(err error, otherwise string) string {
	if distrusted(err) {
		return "give the CA of the driver's certificate, which has to be one for the URL's host, and if the driver asks for one a certificate to show it (--driver-ca, --driver-cert, --driver-key)"
	}
	if late := (unfinished{}); errors.As(err, &late) {
		return "answer Succ once it is done, or Fail if it will not be; Running says that it is being done (lbcf §3.3). What takes longer than this needs --within"
	}
	var e *driver.Error
	if !errors.As(err, &e) {
		return otherwise
	}
	switch e.Cause {
	case driver.CauseConnect, driver.CauseOpen:
		return "start the driver, and look whether the URL, and a firewall between, are right"
	case driver.CauseTimeout:
		return "answer within the webhook's timeout: what takes longer is answered with status Running, and asked for again (lbcf §3.3)"
	case driver.CauseBroken:
		return "look into the driver's log: it ended the connection in the middle of a call"
	case driver.CauseStatus:
		return statusRemedy(e.Status)
	case driver.CauseTooLong:
		return "answer with less than a megabyte (lbcf §3.1)"
	case driver.CauseBody:
		return "answer one JSON object with the types of lbcf §3.3: texts as texts, maps of texts, whole numbers of seconds"
	case driver.CauseInvalid:
		return "answer status Succ, Fail or Running, in these letters, with the fields of the webhook (lbcf §3.3)"
	default:
		return otherwise
	}
}

func statusRemedy(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "show the driver who calls: its bearer token, or a certificate (--token-file, --driver-cert, --driver-key)"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return "serve POST at the URL's path with the webhook's name at its end, and look whether the URL is right (lbcf §3.1)"
	case status == http.StatusBadRequest:
		return "look into the driver's log for what it misses in the request; a driver that serves TLS wants a URL with https"
	case status >= http.StatusInternalServerError:
		return "look into the driver's log; what failed for certain is answered with HTTP 200 and status Fail, or succ false: a 500 leaves open what happened (lbcf §3.1)"
	default:
		return "answer HTTP 200 whatever the outcome; status and succ say how it went (lbcf §3.1)"
	}
}

// distrusted tells whether one side did not believe the other's certificate, or lack of one.
func distrusted(err error) bool {
	var unverified *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var alert tls.AlertError
	return errors.As(err, &unverified) || errors.As(err, &authority) || errors.As(err, &alert) || err != nil && strings.Contains(err.Error(), "remote error: tls:")
}

// why is what is wrong, for people who may know no Go.
func (s *session) why(err error) string {
	text := err.Error()
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		field := wrong.Field[strings.LastIndex(wrong.Field, ".")+1:]
		text = strings.Replace(text, wrong.Error(), fmt.Sprintf("%s is a JSON %s, and has to be %s", field, wrong.Value, typeOf(wrong)), 1)
	}
	var e *driver.Error
	if errors.As(err, &e) && e.Cause == driver.CauseTimeout {
		text += fmt.Sprintf(" (%v)", s.o.Timeout)
	}
	return s.discreet(text)
}

// typeOf names the type that a field has to have as JSON does.
func typeOf(wrong *json.UnmarshalTypeError) string {
	switch kind := wrong.Type.Kind().String(); kind {
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	case "map", "struct":
		return "an object"
	case "slice", "array":
		return "an array"
	default:
		return "a number"
	}
}

// discreet takes out what the driver was shown to believe us, and may have repeated.
func (s *session) discreet(text string) string {
	secrets := []string{s.o.Token}
	if u := s.o.User; u != nil {
		password, _ := u.Password()
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)), password)
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(secret)")
		}
	}
	return text
}
