// SPDX-License-Identifier: Apache-2.0

// Columns of faults that go on at the same time, at most, and what the lane of faults takes for so many, in pixels; at its
// right are the marks of where faults begin and end.
export const mostColumns = 8;
export const faultMarks = 16;
export function faultWidth(columns) { return Math.max(120, 8 + 26 * Math.min(columns, mostColumns) + faultMarks); }

// fitted cuts a text to a width.
export function fitted(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && g.measureText(`${text.slice(0, n)}…`).width > width) n--;
  return `${text.slice(0, n)}…`;
}
