/** The top of the page: is all well, in a word and in a sentence; which gateway this is; is the page itself up to date. */
import { announce, fill, h, keep, say, set } from './dom.js';
import { ago, duration, moment, roughly, timeOfDay } from './format.js';
import { icon } from './icons.js';

/**
 * @typedef {object} Overall
 * @property {'good' | 'warn' | 'bad' | 'unknown'} kind
 * @property {string} word
 * @property {string} sentence
 */

/** Told like a dependency, but it is somebody's will and no fault; a banner of its own tells more of it. */
const MAINTENANCE = 'maintenance';

/** @param {import('./shapes.js').Readiness['dependencies']} dependencies */
function behind(dependencies) {
  return dependencies.filter(({ name }) => name !== MAINTENANCE);
}

/**
 * What an operator should know first. Pure.
 * @param {import('./shapes.js').Readiness} readiness
 * @returns {Overall}
 */
export function overall({ status, dependencies }) {
  if (status === 'starting') return { kind: 'bad', word: 'Starting', sentence: 'This process takes no requests yet.' };
  if (status === 'draining') {
    return { kind: 'bad', word: 'Draining', sentence: 'This process is going down; requests should go elsewhere.' };
  }
  const down = behind(dependencies).filter((dependency) => dependency.status === 'degraded');
  if (down.length > 0) {
    const names = down.map(({ name }) => name).join(' and ');
    return {
      kind: 'warn',
      word: 'Degraded',
      sentence: `Requests are served, but ${names} ${down.length === 1 ? 'is' : 'are'} in trouble.`,
    };
  }
  if (dependencies.some(({ name, status: one }) => name === MAINTENANCE && one === 'degraded')) {
    return { kind: 'warn', word: 'Maintenance', sentence: 'Requests are served from copies alone.' };
  }
  const unasked = behind(dependencies).filter((dependency) => dependency.status === 'unknown');
  if (unasked.length > 0) {
    return {
      kind: 'good',
      word: 'Ready',
      sentence: `Requests are served. ${unasked.map(({ name }) => name).join(' and ')}: not asked for anything yet.`,
    };
  }
  return { kind: 'good', word: 'Ready', sentence: 'Requests are served and everything behind answers.' };
}

const ICONS = /** @type {const} */ ({ good: 'done', warn: 'warning', bad: 'bad', unknown: 'unknown' });
const DEPENDENCY_KINDS = new Map([
  ['ok', /** @type {const} */ ('good')],
  ['degraded', /** @type {const} */ ('warn')],
]);

/**
 * @param {{ readonly readiness: import('./resource.js').Resource<import('./shapes.js').Readiness>, readonly fleet: import('./resource.js').Resource<{ readonly members: readonly import('./shapes.js').Member[] }> }} sources
 */
export function statusBar({ readiness, fleet }) {
  const word = h('strong', { class: 'status-word' });
  const sentence = h('span', { class: 'status-sentence' });
  const sign = h('span', { class: 'status-sign' });
  const overallElement = h('p', { class: 'status-overall' }, sign, word, sentence);
  const dependencies = h('ul', { class: 'dependencies' });
  const about = h('p', { class: 'about' });
  const bar = h('div', { class: 'status', 'data-kind': 'unknown' }, overallElement, dependencies, about);
  say(word, 'Asking …');

  const draw = () => {
    const nowMs = Date.now();
    const state = stateOf(readiness, nowMs);
    if (state === null) return;
    if (bar.dataset['kind'] !== state.kind || word.textContent !== state.word) {
      fill(sign, icon(ICONS[state.kind]));
      announce(`${state.word}. ${state.sentence}`);
    }
    set(bar, 'data-kind', state.kind);
    say(word, state.word);
    say(sentence, state.sentence);
    document.title = state.kind === 'good' ? 'evalgate' : `${state.word} · evalgate`;
    keep(dependencies, behind(readiness.value?.dependencies ?? []), { key: ({ name }) => name, make: dependencyItem });
  };
  readiness.subscribe(draw);
  setInterval(draw, 1000);
  fleet.subscribe(() => {
    const members = fleet.value?.members ?? [];
    const self = members.find((member) => member.self);
    const ready = members.filter((member) => member.status === 'ready').length;
    if (self === undefined) return;
    const size = members.length === 1 ? '1 process' : `${ready} of ${members.length} processes ready`;
    say(
      about,
      `evalgate ${self.version} on ${self.host}, up ${duration(roughly(Date.now() - self.startedAt))} · ${size}`,
    );
  });
  return bar;
}

/**
 * @param {import('./resource.js').Resource<import('./shapes.js').Readiness>} readiness
 * @param {number} nowMs
 * @returns {Overall | null} Null before the first answer.
 */
function stateOf(readiness, nowMs) {
  if (readiness.error !== null) {
    const since = readiness.value === null ? '' : ` What is shown is from ${ago(readiness.atMs, nowMs)}.`;
    return { kind: 'bad', word: 'No answer', sentence: `${readiness.error}${since}` };
  }
  return readiness.value === null ? null : overall(readiness.value);
}

/** @param {import('./shapes.js').Readiness['dependencies'][number]} dependency */
function dependencyItem({ name, status, since, detail }) {
  const kind = DEPENDENCY_KINDS.get(status) ?? 'unknown';
  return h(
    'li',
    { 'data-kind': kind },
    icon(ICONS[kind]),
    h(
      'span',
      {},
      h('strong', {}, name),
      status === 'unknown' ? '' : ` ${status}`,
      since === null || status === 'unknown' ? null : ` since ${moment(since, Date.now())}`,
      h('span', { class: 'detail' }, detail),
    ),
  );
}

/**
 * The banner that stands over everything while the store is asked nothing.
 * @param {import('./resource.js').Resource<import('./shapes.js').Maintenance>} maintenance
 */
export function maintenanceBanner(maintenance) {
  const left = h('strong');
  const rest = h('span');
  const banner = h(
    'div',
    { class: 'banner', role: 'status', hidden: true },
    icon('pause'),
    h('p', {}, left, rest),
    h('a', { href: '#maintenance' }, 'Change or end it'),
  );
  const draw = () => {
    const value = maintenance.value;
    const until = value?.active === true ? value.until : null;
    const leftMs = until === null ? 0 : until - Date.now();
    banner.hidden = leftMs <= 0;
    if (value === null || until === null || leftMs <= 0) return;
    say(
      left,
      `Maintenance: the store is asked nothing for ${duration(roughly(leftMs))} more, until ${timeOfDay(until)}.`,
    );
    say(
      rest,
      ` Copies are served as long as they are usable on error; what has none fails.${value.by === null ? '' : ` Switched on by ${value.by}.`}`,
    );
  };
  maintenance.subscribe(draw);
  setInterval(draw, 1000);
  return banner;
}

/**
 * Whether the page itself hears of the gateway.
 * @param {readonly import('./resource.js').Resource<unknown>[]} resources
 */
export function liveness(resources) {
  const text = h('span');
  const element = h('p', { class: 'liveness', 'data-kind': 'unknown' }, h('span', { class: 'pulse' }), text);
  const draw = () => {
    const newestMs = Math.max(...resources.map(({ atMs }) => atMs));
    const nowMs = Date.now();
    const isLive = nowMs - newestMs < 5000;
    set(element, 'data-kind', newestMs === 0 ? 'unknown' : isLive ? 'good' : 'warn');
    say(text, newestMs === 0 ? 'connecting' : isLive ? 'live' : `last heard ${ago(newestMs, nowMs)}`);
  };
  setInterval(draw, 1000);
  draw();
  return element;
}
