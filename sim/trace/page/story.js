// SPDX-License-Identifier: Apache-2.0

// groups of lanes, in their order from left to right, and the events that tell that something belongs to one.
const groups = [
  ['faults', []],
  ['members', ['leading', 'contact', 'restored']],
  ['nodes', ['acted', 'steered']],
  ['kubernetes', ['object', 'viewed']],
  ['switches', ['session', 'forwarding']],
  ['balancers', ['drive', 'entry']],
  ['clients', ['call-began', 'call-ended', 'flow']],
  ['others', []],
];
const others = groups.length - 1;

// Story is what the events make together: lanes, and what lasts for a while in them.
export class Story {
  constructor(trace) {
    this.trace = trace;
    this.end = Math.max(trace.head.about.until ?? 0, trace.count ? trace.at[trace.count - 1] : 0, 1e6);
    this.findLanes();
    this.findSpans();
    this.findSlow();
    this.findPorts();
  }

  findLanes() {
    const { trace } = this;
    const group = new Map(); // text of a lane -> place of its group
    const votes = trace.kinds.map((k) => (k ? groups.findIndex(([, kinds]) => kinds.includes(k.name)) : -1));
    const vote = (ref, place) => {
      if (ref < 0) return;
      const now = group.get(ref);
      if (now === undefined || place >= 0 && (now < 0 || place < now)) group.set(ref, place);
    };
    let outside = false; // the faults, kubernetes
    for (let i = 0; i < trace.count; i++) {
      const kind = trace.kinds[trace.kind[i]];
      if (trace.lane[i] >= 0) vote(trace.lane[i], votes[trace.kind[i]]);
      else if (kind.lane === '=kubernetes') outside = true;
      if (trace.from[i] >= 0) vote(trace.from[i], -1);
    }
    const byName = new Map();
    const add = (name, place) => {
      if (!byName.has(name)) byName.set(name, { name, group: place });
      else byName.get(name).group = Math.min(byName.get(name).group, place);
      return byName.get(name);
    };
    add('faults', 0);
    if (outside) add('kubernetes', 3);
    for (const [ref, place] of group) add(this.laneName(trace.text(ref)), place < 0 ? guess(trace.text(ref)) : place);
    for (const driver of [...byName.keys()].filter((n) => n.startsWith('driver-') && byName.has(n.slice(7)))) byName.delete(driver);
    this.lanes = [...byName.values()].sort((a, b) => a.group - b.group || a.name.localeCompare(b.name, 'en', { numeric: true }));
    this.lanes.forEach((lane, i) => { lane.index = i; lane.groupName = groups[lane.group][0]; });
    this.byName = byName;
    const place = new Int32Array(trace.texts).fill(-1);
    for (const ref of group.keys()) place[ref] = this.laneOf(trace.text(ref)) ?? 0;
    const fixed = trace.kinds.map((k) => (k?.lane.startsWith('=') ? this.laneOf(k.lane.slice(1)) : 0));
    this.lane = new Int16Array(trace.count);
    this.fromLane = new Int16Array(trace.count).fill(-1);
    for (let i = 0; i < trace.count; i++) {
      this.lane[i] = trace.lane[i] >= 0 ? place[trace.lane[i]] : fixed[trace.kind[i]] ?? 0;
      if (trace.from[i] >= 0) this.fromLane[i] = place[trace.from[i]];
    }
  }

  laneName(name) { return name === '' ? 'unnamed' : name; }

  // laneOf is the place of the lane of a process, machine or model; undefined when it has none.
  laneOf(name) {
    const lane = this.byName.get(this.laneName(name)) ?? (name.startsWith('driver-') ? this.byName.get(name.slice(7)) : undefined);
    return lane?.index;
  }

  // findSpans pairs what begins with what ends.
  findSpans() {
    const { trace, end } = this;
    this.spans = []; // {type, lane, from, to, label, event}
    this.faults = []; // {on, from, to, label, event, column}
    const open = new Map();
    const begin = (key, span) => { finish(key, span.from); open.set(key, span); };
    const finish = (key, to) => {
      const span = open.get(key);
      if (!span) return;
      open.delete(key);
      span.to = to;
      (span.type === 'fault' ? this.faults : this.spans).push(span);
    };
    const died = (name, at) => { for (const type of ['life', 'term', 'alone']) finish(`${type} ${name}`, at); };
    const rules = {
      started: (get, s) => begin(`life ${get('process').value}`, { ...s, type: 'life', label: `life ${get('life').value}` }),
      ended: (get, s) => died(get('process').value, s.from),
      'machine-down': (get, s) => { died(get('machine').value, s.from); begin(`off ${get('machine').value}`, { ...s, type: 'off', label: 'no power' }); },
      'machine-up': (get, s) => finish(`off ${get('machine').value}`, s.from),
      leading: (get, s) => (get('on').raw
        ? begin(`term ${get('process').value}`, { ...s, type: 'term', term: get('term').raw, label: `leads, term ${get('term').value}` })
        : finish(`term ${get('process').value}`, s.from)),
      contact: (get, s) => (get('quorum').raw
        ? finish(`alone ${get('process').value}`, s.from)
        : begin(`alone ${get('process').value}`, { ...s, type: 'alone', label: 'no quorum' })),
      'fault-began': (get, s) => begin(`fault ${get('id').value}`, {
        ...s, type: 'fault', on: get('on').list, label: get('text').value || [get('fault').value, ...get('on').list].join(' '),
      }),
      'fault-ended': (get, s) => finish(`fault ${get('id').value}`, s.from),
    };
    const byKind = trace.kinds.map((k) => (k ? rules[k.name] : undefined));
    for (let i = 0; i < trace.count; i++) {
      const rule = byKind[trace.kind[i]];
      if (rule) rule((name) => trace.get(i, name), { lane: this.lane[i], from: trace.at[i], event: i });
    }
    for (const key of [...open.keys()]) finish(key, end);
    this.faults.sort((a, b) => a.from - b.from || a.event - b.event);
    this.stackFaults();
  }

  // stackFaults puts faults that overlap into columns beside each other.
  stackFaults() {
    const ends = [];
    for (const fault of this.faults) {
      let column = ends.findIndex((to) => to <= fault.from);
      if (column < 0) column = ends.length;
      ends[column] = fault.to;
      fault.column = column;
      fault.lanes = [...new Set(fault.on.map((name) => this.laneOf(name)).filter((l) => l !== undefined))];
    }
    this.faultColumns = Math.max(ends.length, 1);
  }

  // findSlow lists messages that were under way for long: a view may hold nothing of them but their middle.
  findSlow() {
    const { trace } = this;
    this.quick = 50e6;
    this.slow = [];
    const message = trace.kindNumber('message');
    for (let i = 0; i < trace.count; i++) {
      if (trace.kind[i] === message && this.landed(i) - trace.sent[i] > this.quick) this.slow.push(i);
    }
  }

  // findPorts numbers the ports that messages went to, by name.
  findPorts() {
    const { trace } = this;
    const refs = [...new Set(trace.port)].filter((ref) => ref >= 0).sort((a, b) => trace.text(a).localeCompare(trace.text(b)));
    this.ports = refs.map((ref) => trace.text(ref));
    this.portOf = new Map(refs.map((ref, n) => [ref, n]));
  }

  // landed is when a message arrived, or was lost.
  landed(i) { return this.trace.arrived[i] || this.trace.at[i]; }
}

// guess goes by the names that worlds use.
function guess(name) {
  if (/^m[1-9]\d*$/.test(name)) return 1; // m0 and operator are machines that clients call from
  if (/^n\d+$/.test(name)) return 2;
  if (name === 'kubernetes') return 3;
  if (name.startsWith('switch')) return 4;
  if (name.startsWith('driver')) return 5;
  if (name.startsWith('client') || name === 'm0' || name === 'operator') return 6;
  return others;
}
