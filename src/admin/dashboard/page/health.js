/** The Health view: is the gateway all right now, and how was the last hour. */
import { html } from 'htm/preact';
import { LineChart, roundTop, Sparkline } from './chart.js';
import { count, decimal, duration, moment, percent, rate, roughly, timeOfDay } from './format.js';
import { callsPerRead, hitRatio, lastMinute, lineOf, stepsOver, sum, total } from './health-data.js';
import { CLASSES } from './declared.js';
import { live } from './live.js';
import { useStore } from './store.js';
import { Panel, Sign, table, whose } from './ui.js';

/** @typedef {import('./api.js').Answer<'history'>} History */
/** @typedef {Parameters<typeof lineOf>[3]} ValueOf */

export function HealthView() {
  return html`<div class="view">
    <${Panel} id="now" title="Now" of=${live.history} show=${Tiles} />
    <${Panel} id="hour" title="Last hour by class" of=${live.history} show=${Hour} />
    <div class="halves">
      <${Panel} id="readiness" title="Readiness" of=${live.readiness} show=${Dependencies} />
      <${Panel} id="requests" title="Requests by status" of=${live.history} show=${Requests} />
    </div>
    <${Panel} id="left-out" title="Records left out of lists" of=${live.history} show=${LeftOut} />
    <${Panel} id="instances" title="Processes" of=${live.fleet} show=${Processes} />
  </div>`;
}

/** @param {{ readonly data: import('./api.js').Answer<'readyz'> }} props */
function Dependencies({ data }) {
  const rows = data.dependencies.map(({ name, status, since, detail }) => {
    const kind = status === 'ok' ? 'good' : status === 'degraded' ? 'warn' : 'unknown';
    return { key: name, cells: [name, html`<${Sign} kind=${kind} />${status}`, moment(since), detail] };
  });
  return table('Dependencies', ['Dependency', 'State', 'Since', 'Cause'], rows);
}

/** @param {{ readonly data: History }} props */
function Requests({ data }) {
  const { recent, seconds } = lastMinute(data, Date.now());
  const known = [...new Set(data.points.flatMap(({ statuses }) => Object.keys(statuses)))].toSorted();
  const all = total(data.points, ({ statuses }) => Object.values(statuses).reduce((before, one) => before + one, 0));
  const rows = known.map((status) => {
    const requestsIn = (/** @type {History['points']} */ points) =>
      total(points, ({ statuses }) => statuses[status] ?? 0);
    const hour = requestsIn(data.points);
    return { key: status, cells: [status, rate(requestsIn(recent) / seconds), count(hour), percent(hour / all)] };
  });
  return table('Requests by status', ['Status', '#Now', '#Last hour', '#Share'], rows, 'No requests in the last hour.');
}

/**
 * The share of the store's records that consumers miss, and which ones.
 * @param {{ readonly data: History }} props
 */
function LeftOut({ data: { points, leftOut } }) {
  const listed = total(points, ({ records }) => records.listed);
  const missing = total(points, ({ records }) => records.leftOut);
  if (missing === 0) return html`<p class="empty">None in the last hour, of ${count(listed)}.</p>`;
  const share = missing / listed;
  const kind = share > 0.05 ? 'bad' : share > 0.01 ? 'warn' : 'unknown';
  const rows = leftOut.map(({ id, path, times }) => ({
    key: `${id} ${path}`,
    cells: [html`<code>${id ?? 'without an id'}</code>`, html`<code>${path}</code>`, count(times)],
  }));
  return html`<p>
      <${Sign} kind=${kind} />${percent(share)} of ${count(listed)} records in the last hour: they are incomplete or
      malformed.
    </p>
    ${table('Records left out', ['Record', 'Faulty member', '#Times'], rows)}`;
}

/** @param {{ readonly data: import('./api.js').Answer<'fleet'> }} props */
function Processes({ data: { members, problem } }) {
  const rows = members.map(({ id, host, pid, version, startedAt, status, heardMsAgo, self }) => {
    const state = html`<${Sign} kind=${status === 'ready' ? 'good' : 'bad'} />${status}`;
    const name = html`<code>${host} · ${pid}</code>${self && ' (this one)'}`;
    const heard = self ? 'now' : `${duration(heardMsAgo)} ago`;
    return { key: id, cells: [name, state, heard, version, roughly(Date.now() - Date.parse(startedAt))] };
  });
  return html`${problem !== null && html`<p><${Sign} kind="warn" />${problem}.</p>`}
  ${table('Processes', ['Process', 'Status', 'Last heard', 'Version', 'Up'], rows)}`;
}

/**
 * The numbers to look at first: of the last minute, over a line of the last hour.
 * @param {{ readonly data: History }} props
 */
function Tiles({ data }) {
  const nowMs = Date.now();
  const { recent, counts, seconds } = lastMinute(data, nowMs);
  const over = stepsOver(data, nowMs);
  const line = (/** @type {ValueOf} */ valueOf) => lineOf(over, null, data.stepMs, valueOf).map(([, y]) => y);
  const slowest = Math.max(-1, ...recent.map(({ p99Ms }) => p99Ms ?? -1));
  const stales = over.map(({ staleOnError, p99Ms }) => (p99Ms === null ? null : staleOnError));
  const storeRate = `${rate(counts.storeCalls / seconds)} to the store`;
  const inHour = sum(data.points, null);
  const tiles = [
    ['Hit ratio', percent(hitRatio(counts)), 'served without waiting for the store', line(hitRatio)],
    [
      'Reads',
      rate(counts.reads / seconds),
      `${count(counts.reads)} in the last minute`,
      line(({ reads }, of) => reads / of),
    ],
    ['Store calls per read', decimal(callsPerRead(counts)), storeRate, line(callsPerRead)],
    [
      'Read time p99',
      duration(slowest < 0 ? null : slowest),
      '99 of 100 reads took less',
      over.map(({ p99Ms }) => p99Ms),
    ],
    ['Stale on error', count(total(recent, staleOf)), `${count(total(data.points, staleOf))} in the last hour`, stales],
    ['Failed reads', count(counts.failed), `${count(inHour.failed)} in the last hour`, line(({ failed }) => failed)],
  ];
  return html`${whose(data)}
    <dl class="tiles">
      ${tiles.map(
        ([name, value, note, values]) =>
          html`<div class="tile">
            <dt>${name}</dt>
            <dd class="tile-value">${value}</dd>
            <dd class="hint">${note}</dd>
            <dd><${Sparkline} values=${values} /></dd>
          </div>`,
      )}
    </dl>`;
}

/** @param {History['points'][number]} point */
function staleOf({ staleOnError }) {
  return staleOnError;
}

const HOUR_MS = 3_600_000;
/** A gateway that has just started would otherwise show an empty chart with a speck at its end. */
const SHORTEST_MS = 600_000;

/**
 * Hit ratio and store calls of each class over the hour, and its numbers.
 * @param {{ readonly data: History }} props
 */
function Hour({ data }) {
  const { stepMs, points } = data;
  const nowMs = Date.now();
  const over = stepsOver(data, nowMs);
  const first = over[0] === undefined ? nowMs : Date.parse(over[0].at);
  const from = Math.max(nowMs - HOUR_MS, Math.min(first, nowMs - SHORTEST_MS));
  const x = { from, to: nowMs, ticks: timeTicks(from, nowMs) };
  const linesOf = (/** @type {ValueOf} */ valueOf) =>
    CLASSES.map((name) => ({ id: name, points: lineOf(over, name, stepMs, valueOf) }));
  const calls = linesOf((counts, seconds) => counts.storeCalls / seconds);
  return html`<div class="charts">
      <${LineChart} title="Hit ratio" lines=${linesOf(hitRatio)} y=${{ top: 1, format: wholePercent }} x=${x} />
      <${LineChart} title="Store calls" lines=${calls} y=${{ top: roundTop(calls), format: rate }} x=${x} />
    </div>
    <${ClassTable} points=${points} stepMs=${stepMs} />`;
}

/** @param {{ readonly points: History['points'], readonly stepMs: number }} props */
function ClassTable({ points, stepMs }) {
  const stats = useStore(live.stats).data;
  const seconds = (points.length * stepMs) / 1000 || 1;
  const rows = CLASSES.map((name) => {
    const counts = sum(points, name);
    const latency = stats?.classes.find((one) => one.class === name)?.latencyMs;
    const calls = [decimal(callsPerRead(counts)), rate(counts.storeCalls / seconds)];
    const times = [latency?.p50, latency?.p90, latency?.p99].map((ms) => duration(ms ?? null));
    const cells = [classKey(name), count(counts.reads), percent(hitRatio(counts)), ...calls, count(counts.failed)];
    return { key: name, cells: [...cells, ...times] };
  });
  const columns = ['Class', '#Reads', '#Hit ratio', '#Store calls per read', '#Store calls', '#Failed'];
  return table('Classes', [...columns, '#p50', '#p90', '#p99'], rows);
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
