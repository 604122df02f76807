/** The Health view: is the gateway all right now, and how was the last hour. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { CLASSES } from './answers.js';
import { LineChart, roundTop, Sparkline } from './chart.js';
import { count, decimal, duration, moment, NONE, percent, rate, roughly, timeOfDay } from './format.js';
import { callsPerRead, hitRatio, lastMinute, lineOf, stepsOver, sum } from './health-data.js';
import { live } from './live.js';
import { useStore } from './store.js';
import { Panel, Sign, table } from './ui.js';

/** @typedef {import('./answers.js').History} History */

export function HealthView() {
  return html`<div class="view">
    <${Panel} id="now" title="Now" of=${live.history} show=${Tiles} />
    <${Panel} id="hour" title="Last hour by class" of=${live.history} show=${Hour} />
    <div class="halves">
      <${Panel} id="readiness" title="Readiness" of=${live.readiness} show=${Dependencies} />
      <${Panel} id="requests" title="Requests by status" of=${live.requests} show=${Requests} />
    </div>
    <${Panel} id="instances" title="Instances" of=${live.fleet} show=${Instances} />
  </div>`;
}

/** @param {{ readonly data: import('./answers.js').Readiness }} props */
function Dependencies({ data }) {
  const rows = data.dependencies.map(({ name, status, since, detail }) => {
    const kind = status === 'ok' ? 'good' : status === 'degraded' ? 'warn' : 'unknown';
    const state = html`<${Sign} kind=${kind} /> ${status}`;
    return { key: name, cells: [name, state, since === null ? NONE : moment(since), detail] };
  });
  return table('Dependencies', ['Dependency', 'State', 'Since', 'Cause'], rows);
}

/** @param {{ readonly data: ReturnType<typeof import('./health-data.js').requestRates> }} props */
function Requests({ data }) {
  const all = data.reduce((requests, { total }) => requests + total, 0);
  const rows = data.map(({ status, total, perSecond }) => ({
    key: status,
    cells: [status, rate(perSecond), count(total), percent(total / all)],
  }));
  return table('Requests by status', ['Status', '#Now', '#Since start', '#Share'], rows, 'No requests yet.');
}

/** @param {{ readonly data: readonly import('./answers.js').Instance[] }} props */
function Instances({ data }) {
  const rows = data.map(({ id, host, pid, version, startedAt, status, self }) => {
    const state = html`<${Sign} kind=${status === 'ready' ? 'good' : 'bad'} /> ${status}`;
    const name = html`<code>${host} · ${pid}</code>${self && ' (this one)'}`;
    return { key: id, cells: [name, state, version, roughly(Date.now() - startedAt)] };
  });
  return table('Instances', ['Process', 'Status', 'Version', 'Up'], rows);
}

/**
 * The numbers to look at first: of the last minute, over a line of the last hour.
 * @param {{ readonly data: History }} props
 */
function Tiles({ data }) {
  const pulse = useStore(live.pulse).data ?? [];
  const nowMs = Date.now();
  const { counts, seconds } = lastMinute(data, nowMs);
  const over = stepsOver(data, nowMs);
  const line = (/** @type {Parameters<typeof lineOf>[2]} */ valueOf) => lineOf(over, null, valueOf).map(([, y]) => y);
  const recent = pulse.filter(({ at }) => at > nowMs - 2 * data.stepMs);
  const p99 = recent.length === 0 ? null : Math.max(...recent.map(({ p99Ms }) => p99Ms ?? 0));
  const storeRate = `${rate(counts.storeCalls / seconds)} to the store`;
  const p99s = pulse.map(({ p99Ms }) => p99Ms);
  const stales = pulse.map(({ staleOnError }) => staleOnError);
  const failed = line((each) => each.failed);
  return html`<dl class="tiles">
    ${tile('Hit ratio', percent(hitRatio(counts)), 'without waiting for the store', line(hitRatio))}
    ${tile(
      'Reads',
      rate(counts.reads / seconds),
      `${count(counts.reads)} in the last minute`,
      line((each, of) => each.reads / of),
    )}
    ${tile('Store calls per read', decimal(callsPerRead(counts)), storeRate, line(callsPerRead))}
    ${tile('Read time p99', duration(p99), '99 of 100 reads took less', p99s)}
    ${tile('Stale on error', count(staleIn(recent)), `${count(staleIn(pulse))} in the last hour`, stales)}
    ${tile('Failed reads', count(counts.failed), `${count(sum(data.points, null).failed)} in the last hour`, failed)}
  </dl>`;
}

/** @param {readonly { readonly staleOnError: number }[]} pulse */
function staleIn(pulse) {
  return pulse.reduce((total, { staleOnError }) => total + staleOnError, 0);
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} note
 * @param {readonly (number | null)[]} line Of the last hour.
 */
function tile(name, value, note, line) {
  return html`<div class="tile">
    <dt>${name}</dt>
    <dd class="tile-value">${value}</dd>
    <dd class="hint">${note}</dd>
    <dd><${Sparkline} values=${line} /></dd>
  </div>`;
}

const HOUR_MS = 3_600_000;
/** A gateway that has just started would otherwise show an empty chart with a speck at its end. */
const SHORTEST_MS = 600_000;

/**
 * Hit ratio and store calls of each class over the hour. The table has the numbers of the hour, or of the moment under
 * the pointer.
 * @param {{ readonly data: History }} props
 */
function Hour({ data }) {
  const [pointedMs, setPointedMs] = useState(/** @type {number | null} */ (null));
  const nowMs = Date.now();
  const over = stepsOver(data, nowMs);
  const from = Math.max(nowMs - HOUR_MS, Math.min(over.points[0]?.at ?? nowMs, nowMs - SHORTEST_MS));
  const common = {
    x: { from, to: nowMs, ticks: timeTicks(from, nowMs) },
    marks: pointedMs === null ? [] : [{ at: pointedMs, kind: 'pointer' }],
    onPoint: setPointedMs,
  };
  const linesOf = (/** @type {Parameters<typeof lineOf>[2]} */ valueOf) =>
    CLASSES.map((name) => ({ id: name, points: lineOf(over, name, valueOf) }));
  const calls = linesOf((counts, seconds) => counts.storeCalls / seconds);
  const isThen = (/** @type {number} */ at) => pointedMs !== null && at <= pointedMs && pointedMs < at + data.stepMs;
  const then = over.points.find(({ at }) => isThen(at));
  return html`<div class="charts">
      <${LineChart} title="Hit ratio" lines=${linesOf(hitRatio)} y=${{ top: 1, format: wholePercent }} ...${common} />
      <${LineChart} title="Store calls" lines=${calls} y=${{ top: roundTop(calls), format: rate }} ...${common} />
    </div>
    <p class="hint">
      ${then === undefined ? 'In the last hour' : `At ${timeOfDay(then.at)}`}; latency since the process started.
    </p>
    <${ClassTable} points=${then === undefined ? data.points : [then]} stepMs=${data.stepMs} />`;
}

/** @param {{ readonly points: History['points'], readonly stepMs: number }} props */
function ClassTable({ points, stepMs }) {
  const stats = useStore(live.stats).data;
  const seconds = (points.length * stepMs) / 1000 || 1;
  const rows = CLASSES.map((name) => {
    const counts = sum(points, name);
    const latency = stats?.classes.find((one) => one.class === name)?.latencyMs;
    const perRead = decimal(callsPerRead(counts));
    const read = [count(counts.reads), percent(hitRatio(counts)), perRead, rate(counts.storeCalls / seconds)];
    const times = [latency?.p50, latency?.p90, latency?.p99].map((ms) => duration(ms ?? null));
    return { key: name, cells: [classKey(name), ...read, count(counts.failed), ...times] };
  });
  const columns = [
    'Class',
    '#Reads',
    '#Hit ratio',
    '#Store calls per read',
    '#Store calls',
    '#Failed',
    '#p50',
    '#p90',
    '#p99',
  ];
  return table('Classes', columns, rows);
}

/** @param {number} share */
function wholePercent(share) {
  return `${share * 100}\u00a0%`;
}

/** @param {string} name */
function classKey(name) {
  return html`<svg class="swatch" viewBox="0 0 20 4" aria-hidden="true">
      <path class="line line-${name}" d="M0 2H20" /></svg
    >${name}`;
}

/**
 * @param {number} from
 * @param {number} to
 */
function timeTicks(from, to) {
  const stepMs = to - from > HOUR_MS / 2 ? 900_000 : 300_000;
  const ticks = [];
  for (let at = Math.ceil(from / stepMs) * stepMs; at < to; at += stepMs) ticks.push({ at, text: timeOfDay(at) });
  return ticks;
}
