/** The numbers to look at first, of the last minute, each with where it came from in the last hour. */
import { h, say, set } from './dom.js';
import { count, duration, NONE, percent, rate } from './format.js';
import { countsOf, hitRatio, steps, sum, whole } from './hour-data.js';
import { panel } from './panel.js';
import { hear, together } from './pulse-data.js';
import { sparkline } from './sparkline.js';

/**
 * @param {string} name
 * @param {string} what
 */
function tile(name, what) {
  const value = h('dd', { class: 'tile-value' }, NONE);
  const note = h('dd', { class: 'tile-note' }, ' ');
  const spark = sparkline();
  const range = h('dd', { class: 'tile-range' }, ' ');
  return {
    element: h(
      'div',
      { class: 'tile' },
      h('dt', { title: what }, name),
      value,
      note,
      h('dd', { class: 'tile-spark' }, spark.element),
      range,
    ),
    /**
     * @param {{ readonly value: string, readonly note: string, readonly kind?: 'bad' | 'warn' | '' }} shown
     */
    show: (shown) => {
      say(value, shown.value);
      say(note, shown.note);
      set(value, 'data-kind', shown.kind ?? '');
    },
    /**
     * @param {readonly (number | null)[]} values
     * @param {{ readonly scale: { readonly low: number, readonly high: number }, readonly says: string }} how
     */
    line: (values, { scale, says }) => {
      spark.draw(values, scale);
      say(range, says);
    },
  };
}

/**
 * @param {{ readonly history: import('./resource.js').Resource<import('./shapes.js').History>, readonly pulse: import('./resource.js').Resource<import('./shapes.js').Pulse> }} sources
 */
export function nowPanel({ history, pulse }) {
  const tiles = {
    hits: tile('Hit ratio', 'Reads answered at once from a copy, fresh or stale while it is refreshed'),
    store: tile('Store calls', 'Calls to the store behind, by reads and by refreshes'),
    p99: tile('Read time p99', 'Within this time 99 of 100 reads were answered by the cache, the store included'),
    stale: tile('Stale on error', 'Old copies served because the store failed'),
    failed: tile('Failed reads', 'Reads with nothing to serve: the caller got an error'),
  };
  const list = h('dl', { class: 'tiles' }, ...Object.values(tiles).map(({ element }) => element));
  /** @type {ReturnType<typeof hear>} */
  let heard = new Map();
  pulse.subscribe(() => {
    if (pulse.value !== null) heard = hear(heard, pulse.value, Date.now());
  });
  const draw = () => {
    if (history.value !== null) drawHistory(history.value, tiles);
    drawBeats(together([...heard.values()].map((one) => one.pulse)), tiles);
  };
  return panel({ id: 'now', title: 'Now', sources: [history, pulse], draw }, list);
}

/** @typedef {Record<'hits' | 'store' | 'p99' | 'stale' | 'failed', ReturnType<typeof tile>>} Tiles */

/**
 * @param {import('./shapes.js').History} history
 * @param {Tiles} tiles
 */
function drawHistory(history, tiles) {
  const nowMs = Date.now();
  const all = steps(history);
  const over = whole(all, history.stepMs, nowMs);
  const recentFromMs = over.at(-1)?.atMs ?? all.at(-1)?.atMs ?? nowMs;
  const recent = sum(
    all.filter(({ atMs }) => atMs >= recentFromMs).map(({ point }) => (point === null ? sum([]) : countsOf(point))),
  );
  const seconds = Math.max(1, (nowMs - recentFromMs) / 1000);
  const perStep = over.map(({ point }) => (point === null ? null : countsOf(point)));

  tiles.hits.show({ value: percent(hitRatio(recent)), note: `of ${rate(recent.reads / seconds)} reads` });
  const ratios = perStep.map((counts) => (counts === null ? null : hitRatio(counts)));
  const known = ratios.filter((ratio) => ratio !== null);
  const low = known.length === 0 ? 0 : Math.min(...known);
  tiles.hits.line(ratios, {
    scale: { low: Math.max(0, low - 0.05), high: 1 },
    says: known.length === 0 ? 'no reads in the last hour' : `lowest in the hour ${percent(low)}`,
  });

  const calls = perStep.map((counts) => (counts === null ? null : counts.storeCalls / (history.stepMs / 1000)));
  const most = Math.max(0, ...calls.map((value) => value ?? 0));
  tiles.store.show({
    value: rate(recent.storeCalls / seconds),
    note: `${count(recent.storeCalls)} in the last ${Math.round(seconds)} s`,
  });
  tiles.store.line(calls, {
    scale: { low: 0, high: most === 0 ? 1 : most },
    says: `highest in the hour ${rate(most)}`,
  });

  const failures = perStep.map((counts) => counts?.failed ?? null);
  const total = failures.reduce((/** @type {number} */ so, value) => so + (value ?? 0), 0);
  tiles.failed.show({
    value: recent.reads === 0 ? NONE : percent(recent.failed / recent.reads),
    note:
      recent.failed === 0
        ? 'none of the last minute’s reads'
        : `${count(recent.failed)} in the last ${Math.round(seconds)} s`,
    kind: recent.failed > 0 ? 'bad' : '',
  });
  tiles.failed.line(failures, {
    scale: { low: 0, high: Math.max(1, ...failures.map((value) => value ?? 0)) },
    says: `${count(total)} in the last hour`,
  });
}

/**
 * @param {readonly (import('./pulse-data.js').Beat | null)[]} beats
 * @param {Tiles} tiles
 */
function drawBeats(beats, tiles) {
  const recent = beats.slice(-2).filter((beat) => beat !== null);
  const p99 = recent.length === 0 ? null : Math.max(...recent.map(({ p99Ms }) => p99Ms ?? 0));
  const reads = recent.reduce((total, beat) => total + beat.reads, 0);
  tiles.p99.show({
    value: duration(p99),
    note: p99 === null ? 'no reads in the last minute' : `of the last ${count(reads)} reads`,
  });
  const p99s = beats.map((beat) => beat?.p99Ms ?? null);
  const slowest = Math.max(0, ...p99s.map((value) => value ?? 0));
  tiles.p99.line(p99s, {
    scale: { low: 0, high: slowest === 0 ? 1 : slowest },
    says: slowest === 0 ? 'no reads in the last hour' : `highest in the hour ${duration(slowest)}`,
  });
  const stale = recent.reduce((total, beat) => total + beat.staleOnError, 0);
  tiles.stale.show({ value: count(stale), note: 'copies in the last minute', kind: stale > 0 ? 'warn' : '' });
  const stales = beats.map((beat) => beat?.staleOnError ?? 0);
  const total = stales.reduce((so, value) => so + value, 0);
  tiles.stale.line(stales, {
    scale: { low: 0, high: Math.max(1, ...stales) },
    says: `${count(total)} in the last hour`,
  });
}
