// SPDX-License-Identifier: Apache-2.0

const shortest = 1000; // nanoseconds: nothing in a run is finer

// View is the part of a run that is seen: from time top on, for span nanoseconds, on height pixels.
export class View {
  constructor(end, change) {
    this.end = end;
    this.margin = end * 0.01;
    this.change = change;
    this.height = 1;
    this.whole(false);
  }

  y(time) { return (time - this.top) / this.span * this.height; }
  time(y) { return this.top + y / this.height * this.span; }
  get bottom() { return this.top + this.span; }

  whole(tell = true) { this.set(-this.margin, this.end + 2 * this.margin, tell); }

  set(top, span, tell = true) {
    const all = this.end + 2 * this.margin;
    this.span = Math.min(Math.max(span, shortest), all);
    this.top = Math.min(Math.max(top, -this.margin), this.end + this.margin - this.span);
    if (tell) this.change();
  }

  move(pixels) { this.set(this.top + pixels / this.height * this.span, this.span); }

  // zoom by a factor; the time at y stays where it is.
  zoom(factor, y = this.height / 2) {
    const fixed = this.time(y);
    const span = Math.min(Math.max(this.span * factor, shortest), this.end + 2 * this.margin);
    this.set(fixed - y / this.height * span, span);
  }

  // show brings a time into the middle if it is not well within the view.
  show(time) {
    if (time < this.top + this.span * 0.1 || time > this.bottom - this.span * 0.1) this.set(time - this.span / 2, this.span);
    else this.change();
  }

  // ticks are round times, far enough apart to be labelled.
  ticks() {
    const least = this.span / this.height * 56;
    let step = 10 ** Math.floor(Math.log10(least));
    step *= [1, 2, 5, 10].find((m) => step * m >= least);
    step = Math.max(step, 1);
    const result = [];
    for (let t = Math.max(0, Math.ceil(this.top / step) * step); t <= Math.min(this.bottom, this.end); t += step) result.push(t);
    return { step, times: result };
  }
}

// timeLabel shows a time as exactly as a step between times needs.
export function timeLabel(time, step) {
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / 1e9) - 1e-9)));
  const [whole, part = ''] = (time / 1e9).toFixed(digits).split('.');
  return part === '' ? `${whole} s` : `${whole}.${part.replace(/(\d{3})(?=\d)/g, '$1\u2009')} s`;
}

// lasting shows how long something took.
export function lasting(nanoseconds) {
  const n = Math.abs(nanoseconds);
  const sign = nanoseconds < 0 ? '−' : '';
  if (n < 1e3) return `${sign}${n} ns`;
  if (n < 1e6) return `${sign}${+(n / 1e3).toPrecision(4)} µs`;
  if (n < 1e9) return `${sign}${+(n / 1e6).toPrecision(4)} ms`;
  return `${sign}${+(n / 1e9).toPrecision(5)} s`;
}
