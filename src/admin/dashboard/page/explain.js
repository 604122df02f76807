/** What the cache would do with the next read of a path, and what it holds for it. */
import { wordsOf } from './api.js';
import { fill, h, keep } from './dom.js';
import { ago, bytes, duration, moment } from './format.js';
import { act, outcome, panel } from './panel.js';
import { readExplanation } from './shapes.js';

/** @typedef {import('./shapes.js').Explanation} Explanation */
/** @typedef {import('./shapes.js').Copy} Copy */
/** @typedef {import('./shapes.js').Key} Key */

/**
 * @param {import('./api.js').Api} api
 * @param {import('./resource.js').Resource<{ readonly keys: readonly Key[] }>} keys
 */
export function explainPanel(api, keys) {
  const told = outcome();
  const path = h('input', {
    type: 'text',
    class: 'mono',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: '/v2/calls?page=2',
    required: true,
  });
  const none = h('option', { value: '' }, 'nobody in particular');
  const whose = h('select', {}, none);
  const submit = h('button', { type: 'submit' }, 'Explain');
  const answer = h('div', { class: 'explained', 'aria-live': 'polite' });
  const explain = async () => {
    const asked = path.value.trim();
    const query = new URLSearchParams({
      path: asked,
      ...(whose.value === '' ? {} : { keyId: whose.value }),
    });
    try {
      if (!asked.startsWith('/')) throw new Error('A path begins with a slash, such as /v2/calls?page=2.');
      const explanation = await api.call(`api/cache/explain?${query.toString()}`, readExplanation);
      fill(answer, ...viewOf(explanation));
    } catch (error) {
      fill(answer);
      throw inOwnWords(error);
    }
  };
  const draw = () => {
    const usable = (keys.value?.keys ?? []).filter(({ status }) => status === 'active');
    const chosen = whose.value;
    keep(whose, [null, ...usable], {
      key: (key) => key?.keyId ?? '',
      make: (key) =>
        key === null ? h('option', { value: '' }, 'nobody in particular') : h('option', { value: key.keyId }, key.name),
      version: (key) => key?.name ?? '',
    });
    whose.value = chosen;
  };
  return panel(
    { id: 'explain', title: 'Explain a path', sources: [keys], draw },
    h(
      'form',
      {
        class: 'fields',
        onsubmit: (event) => {
          event.preventDefault();
          void act(submit, told, explain);
        },
      },
      h('label', { class: 'field grow' }, h('span', {}, 'Path of the public API, with its query'), path),
      h('label', { class: 'field' }, h('span', {}, 'As the key'), whose),
      submit,
    ),
    told.element,
    answer,
  );
}

/**
 * The gateway names its query parameters; here there is a field.
 * @param {unknown} error
 */
function inOwnWords(error) {
  const beginning = 'What this path shows depends on who asks.';
  return wordsOf(error).startsWith(beginning) ? new Error(`${beginning} Choose a key in “As the key”.`) : error;
}

/** @param {Explanation} explanation */
function viewOf({ at, key, route, class: cacheClass, next, memory, redis, flight, lastMiss, times }) {
  const rows = [
    ['Class', `${cacheClass}: fresh ${times.fresh}, stale ${times.stale}, on error ${times.error}`],
    ['Route', route],
    ['Memory', memory === null ? 'no copy' : copyWords(memory, at)],
    ['Redis', redisWords(redis, at)],
    [
      'Last miss',
      lastMiss === null ? 'none known' : `${lastMiss.reason}, ${ago(lastMiss.at, at)} (${moment(lastMiss.at, at)})`,
    ],
    [
      'Store',
      flight.since !== null
        ? `being asked for ${duration(at - flight.since)}`
        : flight.justFailed
          ? 'the last call has just failed'
          : 'not being asked',
    ],
  ];
  const tags = (memory ?? redis.entry)?.tags ?? [];
  return [
    h('p', { class: 'next' }, next.text),
    h(
      'dl',
      { class: 'facts' },
      ...rows.flatMap(([name = '', value = '']) => [h('dt', {}, name), h('dd', {}, value)]),
      h('dt', {}, 'Key'),
      h('dd', {}, h('code', {}, key)),
      ...(tags.length === 0
        ? []
        : [h('dt', {}, 'Tags'), h('dd', {}, ...tags.flatMap((tag) => [h('code', {}, tag), ' ']))]),
    ),
  ];
}

/**
 * @param {Copy} copy
 * @param {number} nowMs
 */
function copyWords(
  { state, answer, visible, ageMs, freshUntil, staleUntil, errorUntil, softPurged, bytes: size },
  nowMs,
) {
  const until = (/** @type {string} */ name, /** @type {number | null} */ at) =>
    at !== null && at > nowMs ? [`${name} for ${duration(at - nowMs)} more`] : [];
  return [
    `${state}${answer === 'absent' ? ' (known to be absent)' : ''}, ${duration(ageMs)} old, ${bytes(size)}`,
    ...until('fresh', freshUntil),
    ...until('served stale', staleUntil),
    ...until('kept for errors', errorUntil),
    ...(softPurged ? ['softly purged: refreshed by the next read'] : []),
    ...(visible === false ? ['not to be seen by this key'] : []),
  ].join('; ');
}

/**
 * @param {Explanation['redis']} redis
 * @param {number} nowMs
 */
function redisWords({ state, entry }, nowMs) {
  if (entry !== null) return copyWords(entry, nowMs);
  if (state === 'alone') return 'not configured';
  if (state === 'unreachable') return 'can’t be asked now';
  return state === 'unreadable' ? 'something that is no entry; it counts as nothing' : 'no copy';
}
