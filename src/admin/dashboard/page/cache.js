/** The Cache view: what it holds, why reads miss, what costs the store most, and everything that can be changed. */
import { html } from 'htm/preact';
import { Explain } from './explain.js';
import { bytes, count, duration, NONE, percent } from './format.js';
import { live } from './live.js';
import { Maintenance } from './maintenance.js';
import { PurgeForm } from './purge.js';
import { Ttls } from './ttl.js';
import { Panel, table, useMay, whose } from './ui.js';
import { WhatIf } from './what-if.js';

export function CacheView() {
  const mayPurge = useMay()('purge');
  return html`<div class="view">
    <${Panel} id="ttls" title="TTLs" of=${live.ttls} show=${Ttls} />
    <${Panel} id="what-if" title="What if" of=${live.advice} show=${WhatIf} />
    <${Panel} id="misses" title="Why reads miss" of=${live.stats} show=${Misses} />
    <${Panel} id="top" title="Top by store load" of=${live.top} show=${Top} />
    <div class="halves">
      ${mayPurge && html`<${Panel} id="purge" title="Purge" of=${live.readiness} show=${PurgeForm} />`}
      <${Panel} id="maintenance" title="Maintenance" of=${live.maintenance} show=${Maintenance} />
    </div>
    <${Panel} id="explain" title="Explain a path" of=${live.keys} show=${Explain} />
  </div>`;
}

/** @param {{ readonly data: import('./api.js').Answer<'cacheStats'> }} props */
function Misses({ data }) {
  const { memory, classes } = data;
  const known = Object.keys(classes[0]?.misses ?? {});
  const rows = classes.map(({ class: name, reads, misses, memory: own }) => {
    const missed = Object.values(misses).reduce((total, amount) => total + amount, 0);
    const shares = known.map((reason) => (missed === 0 ? NONE : percent((misses[reason] ?? 0) / missed)));
    const here = own.entries === 0 ? NONE : `${count(own.entries)} · ${bytes(own.bytes)}`;
    return { key: name, cells: [name, count(reads), reads === 0 ? NONE : percent(missed / reads), ...shares, here] };
  });
  const held = `${count(memory.entries)} entries, ${bytes(memory.bytes)} of ${bytes(memory.maxBytes)}`;
  const reasons = known.map((reason) => `#${reason.replace('-', ' ')}`);
  return html`${whose(data)} ${table('Misses', ['Class', '#Reads', '#Missed', ...reasons, '#In memory here'], rows)}
    <p class="hint">
      Reasons as shares of the misses. Expired: a longer TTL would help. Evicted: more memory would help. The memory of
      the process that answers holds ${held}.
    </p>`;
}

/** @param {{ readonly data: import('./api.js').Answer<'cacheTop'> }} props */
function Top({ data }) {
  const { keys, routes } = data;
  const keyRows = keys.map(({ key, class: name, storeCalls, storeMs }) => {
    const shown = html`<code title=${key}>${shortened(key)}</code>`;
    return { key: `${name} ${key}`, cells: [shown, name, count(storeCalls), duration(storeMs)] };
  });
  const routeRows = routes.map(({ route, storeCalls, storeMs }) => ({
    key: route ?? '',
    cells: [html`<code>${route ?? '(no request)'}</code>`, count(storeCalls), duration(storeMs)],
  }));
  const none = 'The store was not called.';
  return html`${whose(data)}
    <div class="halves">
      ${table('Keys by store load', ['Key', 'Class', '#Calls', '#Store time'], keyRows, none)}
      ${table('Routes by store load', ['Route', '#Calls', '#Store time'], routeRows, none)}
    </div>`;
}

/**
 * Keys hold UUIDs, and the part that distinguishes them often comes after these. The whole key is in the title.
 * @param {string} key
 */
function shortened(key) {
  return key.replaceAll(/([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, '$1…');
}
