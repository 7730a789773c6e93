// SPDX-License-Identifier: Apache-2.0

import { sentence } from 'page/sentence';

// What keys, wheel and pointer do.

const $ = (id) => document.getElementById(id);

export function listen(page) {
  const { view } = page;
  const picture = $('picture');
  const scroller = $('scroller');
  new ResizeObserver(() => page.resize()).observe($('stage'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => page.theme());
  matchMedia('print').addEventListener('change', () => { page.theme(); page.resize(); page.draw(); });
  scroller.addEventListener('scroll', () => { page.picture.scroll = scroller.scrollLeft; page.later(); });
  listenPointer(page, picture);
  picture.addEventListener('wheel', (e) => {
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return;
    e.preventDefault();
    if (e.ctrlKey || e.metaKey) view.zoom(1.0018 ** e.deltaY, e.offsetY - page.picture.head);
    else view.move(e.deltaY);
  }, { passive: false });
  $('closer').onclick = () => page.zoom(0.5);
  $('wider').onclick = () => page.zoom(2);
  $('whole').onclick = () => view.whole();
  $('next').onclick = () => page.step(1);
  $('previous').onclick = () => page.step(-1);
  if ($('broken')) $('broken').onclick = () => page.jump();
  $('tools').addEventListener('submit', (e) => { e.preventDefault(); page.step(1); });
  $('filter').addEventListener('input', () => {
    clearTimeout(page.typing);
    page.typing = setTimeout(() => page.refilter(), 120);
  });
  $('copy')?.addEventListener('click', copy);
  document.addEventListener('keydown', (e) => key(page, e));
}

function listenPointer(page, picture) {
  let start;
  picture.addEventListener('pointerdown', (e) => {
    start = { x: e.offsetX, y: e.offsetY, top: page.view.top, left: $('scroller').scrollLeft, zoom: e.shiftKey };
    picture.setPointerCapture(e.pointerId);
  });
  picture.addEventListener('pointermove', (e) => {
    if (!start) { hover(page, e.offsetX, e.offsetY); return; }
    $('tip').hidden = true;
    start.moved ||= Math.hypot(e.offsetX - start.x, e.offsetY - start.y) > 4;
    if (!start.moved) return;
    if (start.zoom) {
      page.picture.stripe = [start.y, e.offsetY].map((y) => y - page.picture.head).sort((p, q) => p - q);
      page.later();
      return;
    }
    page.view.set(start.top - (e.offsetY - start.y) / page.view.height * page.view.span, page.view.span);
    $('scroller').scrollLeft = start.left - (e.offsetX - start.x);
  });
  picture.addEventListener('pointerup', (e) => {
    if (start && !start.moved) page.click(e.offsetX, e.offsetY);
    else if (page.picture.stripe) {
      const [a, b] = page.picture.stripe.map((y) => page.view.time(y));
      page.picture.stripe = null;
      page.view.set(a, b - a);
    }
    start = undefined;
  });
  picture.addEventListener('pointerleave', () => { $('tip').hidden = true; });
}

async function copy() {
  try {
    await navigator.clipboard.writeText($('command').textContent);
    $('copy').textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren($('command'));
    $('copy').textContent = 'Selected';
  }
  setTimeout(() => { $('copy').textContent = 'Copy'; }, 1500);
}

function key(page, e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target === $('filter');
  if (e.key === 'Escape') {
    if (page.picture.selected >= 0 && !typing) page.choose(-1);
    else if ($('filter').value) { $('filter').value = ''; page.refilter(); }
    else $('filter').blur();
    return;
  }
  if (typing) return;
  const { view } = page;
  const most = view.height * 0.85;
  const does = {
    ArrowDown: () => view.move(60), ArrowUp: () => view.move(-60),
    ArrowRight: () => { $('scroller').scrollLeft += 60; }, ArrowLeft: () => { $('scroller').scrollLeft -= 60; },
    PageDown: () => view.move(most), PageUp: () => view.move(-most),
    Home: () => view.set(-view.margin, view.span), End: () => view.set(view.end, view.span),
    '+': () => page.zoom(0.5), '=': () => page.zoom(0.5), '-': () => page.zoom(2), 0: () => view.whole(),
    n: () => page.step(1), p: () => page.step(-1), v: () => page.jump(), '/': () => $('filter').focus(),
  }[e.key];
  if (!does) return;
  e.preventDefault();
  does();
}

function hover(page, x, y) {
  const tip = $('tip');
  const [i] = page.picture.near(x, y, 5);
  $('picture').style.cursor = i === undefined ? '' : 'pointer';
  tip.hidden = i === undefined;
  if (i === undefined) return;
  const text = sentence(page.trace, i);
  tip.textContent = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  const stage = $('stage').getBoundingClientRect();
  const left = Math.min(x + page.picture.timesWidth + 14, stage.width - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > stage.height ? y - tip.offsetHeight - 8 : y + 18}px`;
}
