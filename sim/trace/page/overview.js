// SPDX-License-Identifier: Apache-2.0

// Overview is the whole run in a narrow strip: how much happens, leaders, faults, the violation, and the view.
export class Overview {
  constructor(trace, story, view, canvas) {
    Object.assign(this, { trace, story, view, canvas });
    canvas.addEventListener('pointerdown', (e) => {
      canvas.setPointerCapture(e.pointerId);
      const inside = this.inside(e.offsetY);
      this.grip = inside ?? 0.5;
      this.drag(e.offsetY);
    });
    canvas.addEventListener('pointermove', (e) => { if (e.buttons === 1 && this.grip !== undefined) this.drag(e.offsetY); });
    canvas.addEventListener('pointerup', () => { this.grip = undefined; });
    canvas.addEventListener('wheel', (e) => { e.preventDefault(); view.move(e.deltaY); }, { passive: false });
  }

  resize(width, height, scale) {
    Object.assign(this, { width, height, scale });
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.counts = null;
  }

  y(time) { return (time + this.view.margin) / (this.view.end + 2 * this.view.margin) * this.height; }

  // inside tells where in the view, from 0 to 1, a place is; undefined when it is outside.
  inside(y) {
    const [top, bottom] = [this.y(this.view.top), this.y(this.view.bottom)];
    return y >= top - 4 && y <= bottom + 4 && bottom > top ? (y - top) / (bottom - top) : undefined;
  }

  drag(y) {
    const time = y / this.height * (this.view.end + 2 * this.view.margin) - this.view.margin;
    this.view.set(time - this.grip * this.view.span, this.view.span);
  }

  draw(colours, shown) {
    const g = this.canvas.getContext('2d');
    const { story, view, width, height } = this;
    g.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    g.fillStyle = colours.panel;
    g.fillRect(0, 0, width, height);
    for (const fault of story.faults) {
      g.fillStyle = colours.faultBand;
      g.fillRect(0, this.y(fault.from), width - 1, Math.max(this.y(fault.to) - this.y(fault.from), 1));
      g.fillStyle = colours.fault;
      g.fillRect(0, this.y(fault.from), 4, Math.max(this.y(fault.to) - this.y(fault.from), 1));
    }
    this.drawCounts(g, colours, shown);
    for (const span of story.spans.filter((s) => s.type === 'term')) {
      g.fillStyle = colours.terms[span.term % colours.terms.length];
      g.fillRect(width - 7, this.y(span.from), 5, Math.max(this.y(span.to) - this.y(span.from), 1));
    }
    const broken = this.trace.head.about.violation;
    if (broken) {
      g.fillStyle = colours.alarm;
      g.fillRect(0, this.y(broken.at) - 1.5, width, 3);
    }
    const [top, bottom] = [this.y(view.top), this.y(view.bottom)];
    g.fillStyle = colours.shade;
    g.fillRect(0, 0, width, Math.max(top, 0));
    g.fillRect(0, bottom, width, height - bottom);
    g.strokeStyle = colours.accent;
    g.lineWidth = 2;
    g.strokeRect(1, Math.min(top, height - 4) + 1, width - 2, Math.max(bottom - top - 2, 3));
    g.fillStyle = colours.line;
    g.fillRect(width - 1, 0, 1, height);
  }

  drawCounts(g, colours, shown) {
    if (!this.counts || this.countsOf !== shown) {
      this.counts = this.count(shown);
      this.countsOf = shown;
    }
    const most = this.counts.reduce((a, b) => Math.max(a, b), 1);
    g.fillStyle = colours.message;
    g.globalAlpha = 0.75;
    this.counts.forEach((n, y) => { if (n > 0) g.fillRect(7, y, (this.width - 17) * (0.08 + 0.92 * n / most), 1); });
    g.globalAlpha = 1;
  }

  count(shown) {
    const counts = new Uint32Array(Math.ceil(this.height));
    for (let i = 0; i < this.trace.count; i++) {
      if (!shown || shown[i]) counts[Math.min(counts.length - 1, Math.max(0, Math.floor(this.y(this.trace.at[i]))))]++;
    }
    return counts;
  }
}
