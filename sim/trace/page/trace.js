// SPDX-License-Identifier: Apache-2.0

import { unpack, Cursor } from 'page/bytes';

const MAGIC = 'fairlead trace 1\n'.length;
const decoder = new TextDecoder();

// open reads a trace file (file.go says how it is made) and the texts that go with log entries.
export async function open(file, texts) {
  const [bytes, meanings] = await Promise.all([unpack(file), unpack(texts)]);
  return new Trace(bytes, JSON.parse(decoder.decode(meanings)));
}

// Trace keeps events packed as they came, beside columns of what is asked of all of them: kind, time, lane. Times are
// in nanoseconds. Texts are numbers; text() gives them.
export class Trace {
  constructor(bytes, meanings) {
    const cursor = new Cursor(bytes, MAGIC);
    const size = cursor.number();
    this.bytes = bytes;
    this.start = cursor.pos + size;
    this.head = JSON.parse(decoder.decode(bytes.subarray(cursor.pos, this.start)));
    this.kinds = [null, ...this.head.kinds];
    for (const kind of this.kinds.slice(1)) {
      kind.laneField = kind.fields.findIndex(([name]) => name === kind.lane);
    }
    this.meanings = meanings;
    const n = this.count = this.head.kept;
    this.kind = new Uint8Array(n);
    this.at = new Float64Array(n);
    this.number = new Float64Array(n);
    this.where = new Uint32Array(n); // where its fields begin
    this.lane = new Int32Array(n).fill(-1);
    this.from = new Int32Array(n).fill(-1); // of messages
    this.port = new Int32Array(n).fill(-1);
    this.sent = new Float64Array(n);
    this.arrived = new Float64Array(n); // 0: lost
    this.textStart = [];
    this.textEnd = [];
    this.textCache = [];
    this.blobs = new Set();
    this.scan();
  }

  // scan goes through all events once and fills the columns.
  scan() {
    const cursor = new Cursor(this.bytes, this.start);
    const message = this.kindNumber('message');
    const refs = new Int32Array(16);
    let at = 0;
    let number = 0;
    let moment = 0;
    for (let i = 0; i < this.count; i++) {
      at += cursor.signed();
      number += cursor.number();
      const k = this.bytes[cursor.pos++];
      const kind = this.kinds[k];
      this.kind[i] = k;
      this.at[i] = at;
      this.number[i] = number;
      this.where[i] = cursor.pos;
      const fields = kind.fields;
      for (let f = 0; f < fields.length; f++) {
        switch (fields[f][1]) {
          case 'text': refs[f] = this.learn(cursor); break;
          case 'moment':
            moment = cursor.signed();
            if (fields[f][0] === 'sent') this.sent[i] = at - moment;
            else this.arrived[i] = at - moment;
            break;
          case 'bytes': this.blobs.add(this.learn(cursor)); break;
          default: this.skip(cursor, fields[f][1], (c) => this.learn(c));
        }
      }
      if (kind.laneField >= 0) this.lane[i] = refs[kind.laneField];
      if (k === message) {
        this.from[i] = refs[0];
        this.port[i] = refs[2];
      }
    }
  }

  kindNumber(name) { return this.kinds.findIndex((k) => k && k.name === name); }

  // learn reads a text and keeps where it stands if it is new.
  learn(cursor) {
    const ref = cursor.number();
    if (ref > 0) return ref - 1;
    const size = cursor.number();
    this.textStart.push(cursor.pos);
    cursor.pos += size;
    this.textEnd.push(cursor.pos);
    return this.textStart.length - 1;
  }

  // skip passes a field; text is called for each text in it.
  skip(cursor, type, text) {
    switch (type) {
      case 'text': case 'bytes': text(cursor); break;
      case 'texts': for (let n = cursor.number(); n > 0; n--) text(cursor); break;
      case 'revision': cursor.number(); cursor.number(); break;
      case 'paths':
        for (let n = cursor.number(); n > 0; n--) {
          text(cursor); text(cursor);
          for (let j = 0; j < 5; j++) cursor.number();
        }
        break;
      default: cursor.number();
    }
  }

  text(ref) {
    return this.textCache[ref] ??= this.blobs.has(ref) ? this.blobText(ref)
      : decoder.decode(this.bytes.subarray(this.textStart[ref], this.textEnd[ref]));
  }

  // blobText is what bytes mean: what the writer of the page said, or themselves where they are JSON.
  blobText(ref) {
    const bytes = this.bytes.subarray(this.textStart[ref], this.textEnd[ref]);
    const said = this.meanings[ref + 1];
    if (said !== undefined) return said;
    if (bytes[0] !== 0x7b) return '';
    try {
      return JSON.stringify(JSON.parse(decoder.decode(bytes)), null, 2);
    } catch {
      return '';
    }
  }

  // texts is how many there are.
  get texts() { return this.textStart.length; }

  // reference reads a text that was learnt before.
  reference(cursor) {
    const ref = cursor.number();
    if (ref > 0) return ref - 1;
    const size = cursor.number();
    const start = cursor.pos;
    cursor.pos += size;
    return this.learntAt(start);
  }

  learntAt(start) {
    let low = 0;
    let high = this.textStart.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.textStart[middle] <= start) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  name(i) { return this.kinds[this.kind[i]].name; }

  // fields reads all fields of an event: name, type, value as text, raw as number or texts, empty.
  fields(i) {
    const cursor = new Cursor(this.bytes, this.where[i]);
    return this.kinds[this.kind[i]].fields.map(([name, type]) => ({ name, type, ...this.field(cursor, type, this.at[i]) }));
  }

  field(cursor, type, at) {
    const text = () => this.text(this.reference(cursor));
    switch (type) {
      case 'text': { const value = text(); return { value, empty: value === '' }; }
      case 'int': { const raw = cursor.signed(); return { value: String(raw), raw, empty: raw === 0 }; }
      case 'uint': { const raw = cursor.number(); return { value: String(raw), raw, empty: raw === 0 }; }
      case 'bool': { const raw = cursor.number(); return { value: raw ? 'yes' : 'no', raw, empty: raw === 0 }; }
      case 'moment': { const raw = at - cursor.signed(); return { value: clock(raw), raw, empty: raw === 0 }; }
      case 'revision': {
        const epoch = cursor.number();
        const index = cursor.number();
        return { value: `${epoch}.${index}`, empty: epoch + index === 0 };
      }
      case 'bytes': {
        const ref = this.reference(cursor);
        const size = this.textEnd[ref] - this.textStart[ref];
        return { value: `${size} bytes`, more: this.text(ref), size, start: this.textStart[ref], empty: size === 0 };
      }
      case 'texts': {
        const list = Array.from({ length: cursor.number() }, text);
        return { value: list.join(' '), list, empty: list.length === 0 };
      }
      case 'paths': {
        const list = Array.from({ length: cursor.number() }, () => {
          const [member, hop] = [text(), text()];
          const [med, pref, stale, longLived, best] = Array.from({ length: 5 }, () => cursor.number());
          return `${hop} via ${member} med ${med} pref ${pref}${best ? ' best' : ''}${stale ? ' stale' : ''}${longLived ? ' long-lived' : ''}`;
        });
        return { value: list.join(', '), list, empty: list.length === 0 };
      }
      default: throw new Error(`field of unknown type ${type}`);
    }
  }

  // get is the value of one field.
  get(i, name) { return this.fields(i).find((f) => f.name === name); }

  // after is the first event at or after a time.
  after(time) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

// clock is a time of the run as text.
export function clock(nanoseconds) { return `${(nanoseconds / 1e9).toFixed(6)}s`; }
