// SPDX-License-Identifier: Apache-2.0

import { Cursor } from 'page/bytes';

// A filter is words apart by spaces; all of them must hold. A word occurs in any text of an event or in the name of its
// kind, in either case of letters; field=value names one field and its whole value; a minus before a word negates it.
// Quotes keep spaces together.

// terms reads a filter, at most 30 words of it: they are bits of a number.
export function terms(query) {
  return [...query.matchAll(/(-?)((?:[a-z]+=)?)(?:"([^"]*)"?|(\S+))/g)].slice(0, 30).map(([, not, field, quoted, word]) => ({
    not: not !== '', field: field.slice(0, -1), value: (quoted ?? word).toLowerCase(),
  })).filter((t) => t.value !== '' || t.field !== '');
}

// matching marks the events that a filter takes; null when it takes all of them.
export function matching(trace, query) {
  const wanted = terms(query);
  if (wanted.length === 0) return null;
  const bits = wanted.map((_, t) => 1 << t);
  const anywhere = textBits(trace, wanted, bits, (t, text) => t.field === '' && text.includes(t.value));
  const exactly = textBits(trace, wanted, bits, (t, text) => t.field !== '' && text === t.value);
  const kindBits = trace.kinds.map((k) => or(wanted, bits, (t) => k && t.field === '' && k.name.includes(t.value)));
  const fieldBits = trace.kinds.map((k) => k?.fields.map(([name]) => or(wanted, bits, (t) => t.field !== '' && name.replaceAll(' ', '') === t.field)));
  const must = or(wanted, bits, (t) => !t.not);
  const never = or(wanted, bits, (t) => t.not);
  const numbers = wanted.map((t) => t.value);

  const taken = new Uint8Array(trace.count);
  const cursor = new Cursor(trace.bytes);
  let fresh = 0; // texts come in the order in which they were learnt
  const learn = (c) => {
    const ref = c.number();
    if (ref > 0) return ref - 1;
    const size = c.number();
    c.pos += size;
    return fresh++;
  };
  for (let i = 0; i < trace.count; i++) {
    const k = trace.kind[i];
    const fields = trace.kinds[k].fields;
    let has = kindBits[k];
    cursor.pos = trace.where[i];
    for (let f = 0; f < fields.length; f++) {
      const type = fields[f][1];
      const named = fieldBits[k][f];
      if (type === 'int' || type === 'uint' || type === 'bool') {
        const value = type === 'int' ? cursor.signed() : cursor.number();
        if (named) has |= or(wanted, bits, (t, n) => (named & bits[n]) && sameNumber(type, value, numbers[n]));
      } else {
        trace.skip(cursor, type, (c) => {
          const ref = learn(c);
          has |= anywhere[ref] | (exactly[ref] & named);
        });
      }
    }
    if ((has & must) === must && (has & never) === 0) taken[i] = 1;
  }
  return taken;
}

function sameNumber(type, value, text) {
  return type === 'bool' ? text === (value ? 'yes' : 'no') : String(value) === text;
}

function or(wanted, bits, test) {
  return wanted.reduce((all, t, n) => (test(t, n) ? all | bits[n] : all), 0);
}

// textBits tells for each text which words it satisfies.
function textBits(trace, wanted, bits, test) {
  const result = new Int32Array(trace.texts);
  for (let ref = 0; ref < result.length; ref++) {
    const text = trace.text(ref).toLowerCase();
    result[ref] = or(wanted, bits, (t) => test(t, text));
  }
  return result;
}
