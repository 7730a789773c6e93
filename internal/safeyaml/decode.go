// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"bytes"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// ToJSON gives a document as JSON, within the budget. A key that is there twice is an error; one that is merged from elsewhere is not there.
func (b *Budget) ToJSON(text []byte) ([]byte, error) {
	text, err := b.merged(text)
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSONStrict(text)
}

// merged gives a document that is within the budget, what it merges written out.
func (b *Budget) merged(text []byte) ([]byte, error) {
	root, err := b.spend(text)
	if err != nil || root == nil || !merges(root) {
		return text, err
	}
	if root, err = writeOut(root); err != nil {
		return nil, err
	}
	return yamlv3.Marshal(root)
}

// ToJSON gives a document as JSON. A key that is there twice is an error.
func ToJSON(text []byte) ([]byte, error) { return NewBudget(len(text)).ToJSON(text) }

// Unmarshal reads a document by the names that JSON has for fields. Unknown fields are an error.
func Unmarshal(text []byte, into any) error {
	text, err := NewBudget(len(text)).merged(text)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}

// Decode reads a document by the names that tags "yaml" have for fields. Unknown fields are an error, and io.EOF says that there is none.
func Decode(text []byte, into any) error {
	if err := NewBudget(len(text)).Spend(text); err != nil {
		return err
	}
	d := yamlv3.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	return d.Decode(into)
}

// Root gives the outermost value of a document as it is written, aliases not written out; nil if there is none that can be read.
func Root(text []byte) *yamlv3.Node {
	var whole yamlv3.Node
	if err := yamlv3.Unmarshal(text, &whole); err != nil || len(whole.Content) == 0 {
		return nil
	}
	return whole.Content[0]
}
