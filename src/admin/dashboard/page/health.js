/** The Health view: is the gateway all right now, and how was the last quarter of an hour, hour and day. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { LineChart, roundTop } from './chart.js';
import { CLASSES } from './declared.js';
import { Changes, useEvents } from './events.js';
import { bytes, count, decimal, duration, moment, NONE, percent, rate, roughly, timeOfDay } from './format.js';
import { callsPerRead, hitRatio, lastMinute, lineOf, sum, total } from './health-data.js';
import { live } from './live.js';
import { Store, useStore } from './store.js';
import { button, isPhone, Panel, problemText, Sign, stateText, table, useAllowed, useMay, whose } from './ui.js';

/** @typedef {import('./api.js').Answer<'history'>} History */
/** @typedef {Parameters<typeof lineOf>[2]} ValueOf */
/** @typedef {Pick<import('./chart.js').Line, 'colour' | 'dash'>} Look */

/**
 * The colours of the classes stand in the style sheet; the rarer classes have broken lines too.
 * @type {Readonly<Record<string, readonly number[]>>}
 */
const DASHES = { rubric: [8, 3], dealInsights: [3, 3], notFound: [1, 3] };

/** The ranges of the charts. `steps`: so many are averaged, so that a step with few requests says something. */
const RANGES = /** @type {const} */ ([
  { label: '15 min', ms: 900_000, steps: 2, tickMs: 300_000, note: 'a minute' },
  { label: '1 h', ms: 3_600_000, steps: 4, tickMs: 900_000, note: '2 minutes' },
  { label: '24 h', ms: 86_400_000, steps: 1, tickMs: 14_400_000, note: '10 minutes' },
]);
/** @type {Store<typeof RANGES[number]>} */
const range = new Store(RANGES[1]);
const DAY_MS = RANGES[2].ms;

export function HealthView() {
  const mayKeys = useMay()('keyUse');
  const isDay = useStore(range).ms === DAY_MS;
  const of = isDay ? live.day : live.history;
  return html`<div class="view">
    <${Panel} id="now" title="Now" of=${live.history} show=${Tiles} />
    <${Panel} id="traffic" title="Requests and read times" of=${of} show=${Traffic} />
    <${Panel} id="hour" title="By class" of=${of} show=${Classes} />
    <div class="halves">
      <${Panel} id="readiness" title="Readiness" of=${live.readiness} show=${Dependencies} />
      <${Panel} id="changes" title="State changes" of=${live.health} show=${Changes} folds />
      <${Panel} id="store-calls" title="Calls to the store" of=${live.health} show=${StoreCalls} folds />
      <${Panel} id="requests" title="Requests by status" of=${live.history} show=${Requests} folds />
      <${Panel} id="left-out" title="Records left out of lists" of=${live.history} show=${LeftOut} folds />
      ${mayKeys && html`<${Panel} id="consumers" title="By API key" of=${live.keyUse} show=${KeyUse} folds />`}
      <${Panel} id="workspaces" title="By workspace" of=${live.top} show=${Workspaces} folds />
      <${Panel} id="memory" title="Memory" of=${live.stats} show=${Memory} folds />
      <${Panel} id="instances" title="Processes" of=${live.fleet} show=${Processes} folds />
    </div>
  </div>`;
}

/** @param {{ readonly data: import('./api.js').Answer<'readyz'> }} props */
function Dependencies({ data }) {
  // On a phone, what is all right is a line until it is asked for.
  const [isShort, setShort] = useState(isPhone());
  const isShown = (/** @type {{ readonly status: string }} */ { status }) => !isShort || status !== 'ok';
  const well = data.dependencies.filter((one) => !isShown(one)).map(({ name }) => name);
  const rows = data.dependencies.filter(isShown).map(({ name, status, since, detail }) => ({
    key: name,
    cells: [name, stateText(status), moment(since), detail],
  }));
  const columns = ['Dependency', 'State', 'Since', 'Cause'];
  if (well.length === 0) return table('Dependencies', columns, rows);
  return html`${rows.length > 0 && table('Dependencies', columns, rows)}
    <p><${Sign} kind="good" />ok: ${well.join(', ')}</p>
    <div>${button('Show them', () => setShort(false), { name: 'Show all dependencies' })}</div>`;
}

/**
 * How many calls the store bears at a time, and how many it has, of the process that answers.
 * @param {{ readonly data: import('./api.js').Answer<'health'> }} props
 */
function StoreCalls({ data: { storeCalls } }) {
  const { limit, underWay, waiting, capacity } = storeCalls;
  const rows = [{ key: 'now', cells: ['the process that answers', count(underWay), count(limit), count(waiting)] }];
  const sentence = capacity === null ? 'The store has not shown that it bears no more' : capacity;
  return html`${table('Calls to the store', ['Of', '#Under way', '#Limit', '#Waiting'], rows)}
    <p class="hint">${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.</p>`;
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
  return html`${problemText(problem)} ${table('Processes', ['Process', 'Status', 'Last heard', 'Version', 'Up'], rows)}`;
}

/**
 * How much of what was served was fresh, and the rest. During an outage of the store all reads may be hits, and old.
 * @param {History['points']} points
 * @param {number} reads
 */
function freshness(points, reads) {
  const [stale, onError] = [total(points, (point) => point.stale), total(points, (point) => point.staleOnError)];
  const served = reads - sum(points, null).failed;
  const share = served === 0 ? null : 1 - Math.min(1, stale / served);
  return {
    share,
    note: stale === 0 ? 'no answer was stale' : `${count(stale)} stale, ${count(onError)} because the store fails`,
  };
}

/**
 * The numbers to look at first, of the last minute.
 * @param {{ readonly data: History }} props
 */
function Tiles({ data }) {
  const { recent, counts, seconds } = lastMinute(data, Date.now());
  const slowest = Math.max(-1, ...recent.map(({ p99Ms }) => p99Ms ?? -1));
  const oldest = Math.max(-1, ...recent.map(({ ageP90Ms }) => ageP90Ms ?? -1));
  const fresh = freshness(recent, counts.reads);
  const hour = sum(data.points, null);
  const tiles = [
    ['Served fresh', percent(fresh.share), fresh.note],
    ['Age p90', duration(oldest < 0 ? null : oldest), 'nine of ten answers are at most so old'],
    ['Hit ratio', percent(hitRatio(counts)), 'served without waiting, fresh or stale'],
    ['Reads', rate(counts.reads / seconds), `${count(counts.reads)} in the last minute`],
    ['Store calls per read', decimal(callsPerRead(counts)), `${rate(counts.storeCalls / seconds)} to the store`],
    ['Read time p99', duration(slowest < 0 ? null : slowest), '99 of 100 reads took less'],
    ['Failed reads', count(counts.failed), `${count(hour.failed)} in the last hour`],
  ];
  return html`${whose(data)}
    <dl class="tiles">
      ${tiles.map(
        ([name, value, note]) =>
          html`<div class="tile">
            <dt>${name}</dt>
            <dd class="tile-value">${value}</dd>
            <dd class="hint">${note}</dd>
          </div>`,
      )}
    </dl>`;
}

/** A gateway that has just started would otherwise show an empty chart with a speck at its end. */
const SHORTEST_MS = 600_000;

/**
 * The axis of the chosen range, the steps in it, and how they are averaged.
 * @param {Pick<History, 'points' | 'stepMs'>} data
 */
function useRange({ points, stepMs }) {
  const { ms, steps, tickMs, note } = useStore(range);
  const marks = useEvents();
  const nowMs = Date.now();
  // The step under way still counts, so its rates would be too low.
  const isShown = (/** @type {number} */ at) => at > nowMs - ms - steps * stepMs && at + stepMs <= nowMs;
  const shown = points.filter(({ at }) => isShown(Date.parse(at)));
  const first = shown[0] === undefined ? nowMs : Date.parse(shown[0].at);
  const from = Math.max(nowMs - ms, Math.min(first, nowMs - SHORTEST_MS));
  const places = shown.map(({ at }) => Date.parse(at) + stepMs);
  const ticks = timeTicks(from, nowMs, nowMs - from > ms / 2 ? tickMs : tickMs / 3);
  const x = { places, from, to: nowMs, ticks, format: moment };
  const line = (/** @type {string} */ label, /** @type {Look} */ look, /** @type {ValueOf} */ valueOf) => ({
    label,
    ...look,
    values: lineOf(shown, { stepMs, steps }, valueOf),
  });
  /** @param {string} title @param {readonly import('./chart.js').Line[]} lines @param {(value: number) => string} format */
  const chart = (title, lines, format, { top = roundTop(lines), how = 'average' } = {}) =>
    html`<${LineChart} ...${{ title, lines, x, marks, note: `${how} of ${note}`, y: { top, format } }} />`;
  return { chart, line, shown };
}

/** How a status is drawn. @param {string} status @returns {Look} */
function lookOf(status) {
  if (status.startsWith('5')) return { colour: 'bad' };
  if (['401', '403', '429'].includes(status)) return { colour: 'warn' };
  return status === '200' ? { colour: 'accent' } : { colour: 'ink-2', dash: [3, 3] };
}

/** @param {'p50Ms' | 'p99Ms'} name @returns {ValueOf} */
function worstOf(name) {
  return (points) => Math.max(0, ...points.map((point) => point[name] ?? 0));
}

/**
 * The first thing to look at when consumers complain.
 * @param {{ readonly data: History }} props
 */
function Traffic({ data }) {
  const { chart, line, shown } = useRange(data);
  const chosen = useStore(range);
  const statuses = [...new Set(shown.flatMap((point) => Object.keys(point.statuses)))].toSorted();
  const requests = statuses.map((status) =>
    line(status, lookOf(status), (points, seconds) => total(points, (point) => point.statuses[status] ?? 0) / seconds),
  );
  const times = [
    line('99 of 100', { colour: 'warn' }, worstOf('p99Ms')),
    line('half', { colour: 'accent' }, worstOf('p50Ms')),
  ];
  return html`${data.problem !== null && whose(data)}
    <div class="buttons" role="group" aria-label="Range of the charts">
      ${RANGES.map((one) =>
        button(one.label, () => range.set(one), {
          kind: one.label === chosen.label ? 'primary' : '',
          name: `Show ${one.label}`,
        }),
      )}
      <span class="hint">Upright lines are changes, restarts and losses: point at one.</span>
    </div>
    <div class="charts">
      ${chart('Requests', requests, rate)} ${chart('Read times', times, duration, { how: 'worst' })}
    </div>`;
}

/**
 * Hit ratio and store calls of each class, and its numbers.
 * @param {{ readonly data: History }} props
 */
function Classes({ data }) {
  const { chart, line, shown } = useRange(data);
  const used = CLASSES.filter((name) => sum(shown, name).reads > 0);
  const unused = CLASSES.filter((name) => !used.includes(name));
  /** @param {(counts: import('./health-data.js').Counts, seconds: number) => number | null} valueOf */
  const linesOf = (valueOf) =>
    used.map((name) =>
      line(name, { colour: name, dash: DASHES[name] ?? [] }, (points, seconds) => {
        const counts = sum(points, name);
        return counts.reads === 0 && counts.storeCalls === 0 ? null : valueOf(counts, seconds);
      }),
    );
  const hitRatios = linesOf(hitRatio);
  const storeCalls = linesOf((counts, seconds) => counts.storeCalls / seconds);
  const stats = useStore(live.stats).data;
  const seconds = (shown.length * data.stepMs) / 1000 || 1;
  const rows = used.map((name) => {
    const counts = sum(shown, name);
    const latency = stats?.classes.find((one) => one.class === name)?.latencyMs;
    const calls = [decimal(callsPerRead(counts)), rate(counts.storeCalls / seconds)];
    const times = [latency?.p50, latency?.p90, latency?.p99].map((ms) => duration(ms ?? null));
    const cells = [classKey(name), count(counts.reads), percent(hitRatio(counts)), ...calls, count(counts.failed)];
    return { key: name, cells: [...cells, ...times] };
  });
  const columns = ['Class', '#Reads', '#Hit ratio', '#Store calls per read', '#Store calls', '#Failed'];
  return html`<div class="charts only-wide">
      ${chart('Hit ratio', hitRatios, (share) => `${share * 100}\u00a0%`, { top: 1 })}
      ${chart('Store calls', storeCalls, rate)}
    </div>
    ${table('Classes', [...columns, '#p50', '#p90', '#p99'], rows, 'No reads yet.')}
    ${used.length > 0 && unused.length > 0 && html`<p class="hint">No reads: ${unused.join(', ')}.</p>`}`;
}

/** @param {string} name */
function classKey(name) {
  const style = { stroke: `var(--${name})`, strokeDasharray: DASHES[name]?.join(' ') };
  return html`<svg class="swatch" viewBox="0 0 20 4" aria-hidden="true">
      <path d="M0 2H20" style=${style} /></svg
    >${name}`;
}

/** @param {number} from @param {number} to @param {number} stepMs */
function timeTicks(from, to, stepMs) {
  const ticks = [];
  for (let at = Math.ceil(from / stepMs) * stepMs; at < to; at += stepMs) ticks.push({ at, text: timeOfDay(at) });
  return ticks;
}

const MAX_ROWS = 10;

/** @param {{ readonly data: import('./api.js').Answer<'keyUse'> }} props */
function KeyUse({ data }) {
  const names = new Map((useAllowed('listKeys', live.keys) ?? []).map(({ keyId, name }) => [keyId, name]));
  const load = useAllowed('cacheTop', live.top)?.apiKeys ?? [];
  const busiest = data.keys.toSorted((a, b) => b.requests - a.requests).slice(0, MAX_ROWS);
  const rows = busiest.map(({ keyId, requests, refused }) => {
    const name = html`${names.get(keyId) ?? ''} <code class="id">${keyId}</code>`;
    const calls = load.find((one) => one.keyId === keyId)?.storeCalls;
    const shownCalls = calls === undefined ? NONE : count(calls);
    return { key: keyId, cells: [name, count(requests), percent(refused / requests), shownCalls] };
  });
  return html`${whose(data)}
  ${table('Requests by API key', ['Key', '#Requests', '#429', '#Store calls'], rows, 'No requests in the last hour.')}`;
}

/** @param {{ readonly data: import('./api.js').Answer<'cacheTop'> }} props */
function Workspaces({ data }) {
  const rows = data.workspaces.slice(0, MAX_ROWS).map(({ workspaceId, storeCalls, storeMs }) => ({
    key: workspaceId ?? '',
    cells: [html`<code class="id">${workspaceId ?? 'of several'}</code>`, count(storeCalls), duration(storeMs)],
  }));
  return html`${whose(data)}
  ${table('Store load by workspace', ['Workspace', '#Store calls', '#Store time'], rows, 'The store was not called.')}`;
}

/** @param {{ readonly data: import('./api.js').Answer<'cacheStats'> }} props */
function Memory({ data: { memory, redis } }) {
  const own = { role: 'this process', usedBytes: memory.bytes, maxBytes: memory.maxBytes, keys: memory.entries };
  const rows = [own, ...redis.map((one) => ({ ...one, role: `Redis, ${one.role}` }))].map((one) => {
    const { role, usedBytes, maxBytes, keys } = one;
    const limit = maxBytes === null ? NONE : maxBytes === 0 ? 'none' : bytes(maxBytes);
    const share = maxBytes ? percent(usedBytes / maxBytes) : NONE;
    return { key: role, cells: [role, bytes(usedBytes), limit, share, count(keys)] };
  });
  return table('Memory', ['Of', '#Used', '#Limit', '#Share', '#Entries'], rows);
}
