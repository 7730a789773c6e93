// SPDX-License-Identifier: Apache-2.0

// unpack gives the bytes behind base64 of gzip.
export async function unpack(base64) {
  const text = atob(base64.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Cursor reads numbers and texts from packed bytes. Numbers are exact up to 2^53.
export class Cursor {
  constructor(bytes, pos = 0) {
    this.bytes = bytes;
    this.pos = pos;
  }

  number() {
    const bytes = this.bytes;
    let byte = bytes[this.pos++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let weight = 128;
    do {
      byte = bytes[this.pos++];
      value += (byte & 127) * weight;
      weight *= 128;
    } while (byte >= 128);
    return value;
  }

  signed() {
    const u = this.number();
    return u % 2 ? -(u + 1) / 2 : u / 2;
  }
}
