// SPDX-License-Identifier: Apache-2.0

export const faultWidth = 120; // pixels of the lane of faults

// fitted cuts a text to a width.
export function fitted(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && g.measureText(`${text.slice(0, n)}…`).width > width) n--;
  return `${text.slice(0, n)}…`;
}
