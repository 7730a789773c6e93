// SPDX-License-Identifier: Apache-2.0

// sentence puts an event into words; sentence.go says how the templates are made.
export function sentence(trace, i) {
  return say(trace.kinds[trace.kind[i]].words, new Map(trace.fields(i).map((f) => [f.name, f])));
}

function say(words, fields) {
  return words
    .replace(/\[([^\]]*)\]/g, (_, part) => (whole(part, fields) ? part : ''))
    .replace(/\{([^}?]*)(\?([^|}]*)\|([^}]*))?\}/g, (_, name, choice, yes, no) => {
      const field = fields.get(name);
      if (choice === undefined) return field.value;
      return field.empty ? no : yes;
    });
}

function whole(part, fields) {
  return [...part.matchAll(/\{([^}]*)\}/g)].every(([, name]) => !fields.get(name).empty);
}
