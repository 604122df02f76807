/** Explains what the cache would do with the next read of a path, and what it holds for it. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { call } from './api.js';
import { bytes, duration, moment } from './format.js';
import { Form, SelectField, table, useTexts } from './ui.js';

/** @typedef {import('./api.js').Answer<'explain'>} Explanation */

/** @param {{ readonly data: readonly import('./keys.js').Key[] }} props */
export function Explain({ data }) {
  const { typed, field } = useTexts({ path: '' });
  const [keyId, setKeyId] = useState('');
  const [answer, setAnswer] = useState(/** @type {Explanation | null} */ (null));
  const path = typed.path.trim();
  const run = async () => {
    setAnswer(null);
    setAnswer(await call('explain', { query: { path, ...(keyId === '' ? {} : { keyId }) } }));
  };
  const active = data.filter(({ status }) => status === 'active');
  const options = [['', 'no key'], ...active.map((key) => [key.keyId, key.name])];
  return html`<${Form} submit="Explain" run=${run} isOff=${path === ''}>
      <div class="fields">
        ${field('path', 'Path of the public API, with its query', 'such as /v2/calls?page=2')}
        <${SelectField} label="As the key" value=${keyId} options=${options} onChoice=${setKeyId} />
      </div>
    <//>
    <div aria-live="polite">${answer !== null && explanation(answer)}</div>`;
}

/** @param {Explanation} explanation */
function explanation({ at, key, route, class: cacheClass, next, memory, redis, flight, lastMiss, times }) {
  const tags = (memory ?? redis.entry)?.tags ?? [];
  const facts = [
    ['Class', `${cacheClass}: fresh ${times.fresh}, stale ${times.stale}, on error ${times.error}`],
    ['Route', route],
    ['Key', key],
    ['Memory', memory === null ? 'no copy' : copyText(memory, at)],
    ['Redis', redis.entry === null ? (REDIS_TEXTS.get(redis.state) ?? 'no copy') : copyText(redis.entry, at)],
    ['Last miss', lastMiss === null ? 'none known' : `${lastMiss.reason}, ${moment(lastMiss.at)}`],
    ['Store', storeText(flight, at)],
    ['Tags', tags.join(' ')],
  ];
  const rows = facts.map(([name = '', fact]) => ({ key: name, cells: [name, fact] }));
  return html`<p><strong>${next.text}</strong></p>
    ${table('Explanation', ['About', 'What is known'], rows)}`;
}

const REDIS_TEXTS = new Map([
  ['alone', 'not configured'],
  ['unreachable', 'does not answer now'],
  ['unreadable', 'not an entry; it is ignored'],
]);

/** @param {Explanation['flight']} flight @param {string} now */
function storeText({ since, justFailed }, now) {
  if (since !== null) return `being called for ${duration(Date.parse(now) - Date.parse(since))}`;
  return justFailed ? 'the last call has just failed' : 'not being called';
}

/** @param {NonNullable<Explanation['memory']>} copy @param {string} now */
function copyText(
  { state, answer, owner, ageMs, freshUntil, staleUntil, errorUntil, softPurged, changed, bytes: size },
  now,
) {
  const until = (/** @type {string} */ name, /** @type {string | null} */ at) => {
    const leftMs = at === null ? 0 : Date.parse(at) - Date.parse(now);
    return leftMs > 0 ? [`${name} for ${duration(leftMs)} more`] : [];
  };
  return [
    `${state}${answer === 'absent' ? ' (known to be absent)' : ''}, ${duration(ageMs)} old, ${bytes(size)}`,
    ...until('fresh', freshUntil),
    ...until('served stale', staleUntil),
    ...until('kept for errors', errorUntil),
    ...(changed === null ? [] : ['from before a change: the next read renews it first']),
    ...(softPurged ? ['softly purged: the next read refreshes it'] : []),
    `of ${owner}`,
  ].join('; ');
}
