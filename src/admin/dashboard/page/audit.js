/** The audit: who changed what, when, and how it differs. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { count, moment } from './format.js';
import { button, problemText, table } from './ui.js';

const SHOWN_FIRST = 20;

/** @param {{ readonly data: import('./api.js').Answer<'audit'> }} props */
export function Audit({ data: { entries, problem } }) {
  const [isAll, setAll] = useState(false);
  const rows = entries.slice(0, isAll ? undefined : SHOWN_FIRST).map(({ at, who, action, target, from, to }, index) => {
    const what = html`${wordsOf(action)} <code>${target}</code>`;
    return { key: String(entries.length - index), cells: [moment(at), who, what, differenceText(from, to)] };
  });
  const label = isAll ? 'Show the newest only' : `Show all ${count(entries.length)}`;
  const none = problem === null ? 'Nothing was changed yet.' : 'None.';
  return html`${problemText(problem)} ${table('Audit', ['When', 'Who', 'What', 'Change'], rows, none)}
  ${entries.length > SHOWN_FIRST && html`<div>${button(label, () => setAll(!isAll))}</div>`}`;
}

/** @param {string} action */
export function wordsOf(action) {
  return ACTIONS.get(action) ?? action;
}

const ACTIONS = new Map([
  ['access.refuse', 'was refused'],
  ['key.create', 'created the key'],
  ['key.activate', 'activated the key'],
  ['key.deprecate', 'deprecated the key'],
  ['key.revoke', 'revoked the key'],
  ['key.rotate', 'rotated the key'],
  ['key.loss.acknowledge', 'acknowledged the loss of'],
  ['key.import', 'imported'],
  ['cache.ttl.set', 'set the TTLs of'],
  ['cache.ttl.reset', 'reset the TTLs of'],
  ['cache.ttl.end', 'the TTLs set for a while ended of'],
  ['cache.purge', 'purged'],
  ['secret.change', 'read the new value of'],
  ['cache.maintenance.on', 'began maintenance of'],
  ['cache.maintenance.move', 'moved the end of maintenance of'],
  ['cache.maintenance.off', 'ended maintenance of'],
]);

const MAX_MEMBERS = 8;
const MAX_VALUE_LENGTH = 80;

/**
 * The difference, member by member: `fresh 30s to 45s`.
 * @param {unknown} from
 * @param {unknown} to
 */
function differenceText(from, to) {
  const [before, after] = [new Map(textsOf(from)), new Map(textsOf(to))];
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const changes = names.flatMap((name) => {
    const [was = '', is = ''] = [before.get(name), after.get(name)];
    if (was === is) return [];
    return [was === '' ? `${name} ${is}` : `${name} ${was} to ${is === '' ? 'none' : is}`];
  });
  return changes.slice(0, MAX_MEMBERS).join(', ') + (changes.length > MAX_MEMBERS ? ', …' : '');
}

/**
 * The members of an audited value as texts; members of members as `limits.perMinute`.
 * @param {unknown} value
 * @returns {[name: string, text: string][]}
 */
function textsOf(value) {
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return members.flatMap(([name, member]) => {
    if (member === null || member === undefined) return [];
    if (typeof member === 'object' && !Array.isArray(member)) {
      return textsOf(member).map(([inner, text]) => [`${name}.${inner}`, text]);
    }
    const text = Array.isArray(member) ? member.join(' + ') : String(member);
    return [[name, text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text]];
  });
}
