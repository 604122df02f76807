/** The form in which a key is described, and the request that it makes. */
import { freshId, h, set } from './dom.js';
import { parseDuration } from './format.js';

const SCOPES = /** @type {const} */ ([
  ['reports.read', 'v1: reports'],
  ['calls.read', 'v2: calls and transcripts'],
  ['coaching.read', 'v2: scorecards and rubrics'],
]);

/**
 * @typedef {object} Fields
 * @property {string} name
 * @property {string} workspaces
 * @property {readonly string[]} scopes
 * @property {string} perMinute
 * @property {string} perHour
 * @property {string} expires
 */

/**
 * The body of the request. Throws where a number or a length of time is none; all else the gateway judges. Pure.
 * @param {Fields} fields
 * @param {number} nowMs
 */
export function keyRequest({ name, workspaces, scopes, perMinute, perHour, expires }, nowMs) {
  return {
    name: name.trim(),
    workspaceIds: workspaces.split(/[\s,;]+/).filter((id) => id !== ''),
    scopes,
    ...limitOf('perMinute', perMinute),
    ...limitOf('perHour', perHour),
    ...expiryOf(expires, nowMs),
  };
}

/**
 * @param {string} name
 * @param {string} typed
 */
function limitOf(name, typed) {
  if (typed.trim() === '') return {};
  if (/^[0-9]{1,10}$/.test(typed.trim())) return { [name]: Number(typed) };
  throw new Error(`${name}: “${typed}” is no whole number. Leave it empty for the gateway’s own limit.`);
}

/**
 * @param {string} typed
 * @param {number} nowMs
 */
function expiryOf(typed, nowMs) {
  if (typed.trim() === '') return {};
  const lifeMs = parseDuration(typed);
  if (lifeMs !== null && lifeMs > 0) return { expiresAt: new Date(nowMs + lifeMs).toISOString() };
  throw new Error(`Expires after: “${typed}” is no time. Write 90d, 12h or 30m; leave it empty for never.`);
}

/** @param {readonly import('./shapes.js').Key[]} known Keys whose workspaces are offered. */
export function keyFields(known) {
  const [name, perMinute, perHour, expires] = [textInput(), textInput('short'), textInput('short'), textInput('short')];
  set(name, 'required', true);
  for (const limit of [perMinute, perHour]) set(limit, 'inputmode', 'numeric');
  const workspaces = h('textarea', { rows: 2, class: 'mono', spellcheck: 'false', required: true });
  const scopes = SCOPES.map(([scope]) => h('input', { type: 'checkbox', value: scope, checked: true }));
  return {
    name,
    elements: [
      field('Name', name, 'who uses it, and for what'),
      field('Workspaces', workspaces, 'their UUIDs, with blanks or line feeds between'),
      offered(known, workspaces),
      h(
        'fieldset',
        {},
        h('legend', {}, 'Scopes'),
        ...SCOPES.map(([scope, what], index) =>
          h('label', { class: 'check' }, scopes[index], h('code', {}, scope), ` ${what}`),
        ),
      ),
      h(
        'div',
        { class: 'fields' },
        field('Per minute', perMinute, 'empty: the gateway’s'),
        field('Per hour', perHour, 'empty: the gateway’s'),
        field('Expires after', expires, '90d; empty: never'),
      ),
    ],
    /** @returns {Fields} */
    read: () => ({
      name: name.value,
      workspaces: workspaces.value,
      scopes: scopes.filter((box) => box.checked).map((box) => box.value),
      perMinute: perMinute.value,
      perHour: perHour.value,
      expires: expires.value,
    }),
  };
}

/** @param {string} [extra] */
function textInput(extra = '') {
  return h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', class: extra });
}

/**
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} help
 */
function field(label, control, help) {
  const helpId = freshId();
  control.id = freshId();
  set(control, 'aria-describedby', helpId);
  return h(
    'div',
    { class: 'field' },
    h('label', { for: control.id }, label),
    control,
    h('span', { class: 'help', id: helpId }, help),
  );
}

/**
 * Workspaces that other keys have, to be added by a click: nobody types a UUID well at night.
 * @param {readonly import('./shapes.js').Key[]} known
 * @param {HTMLTextAreaElement} workspaces
 */
function offered(known, workspaces) {
  const ids = [...new Set(known.flatMap((key) => key.workspaceIds))].slice(0, 4);
  if (ids.length === 0) return null;
  const add = (/** @type {string} */ id) => {
    if (!workspaces.value.includes(id)) workspaces.value = `${workspaces.value.trim()} ${id}`.trim();
    workspaces.focus();
  };
  return h(
    'div',
    { class: 'offered' },
    h('span', { class: 'help' }, 'Of other keys:'),
    ...ids.map((id) => h('button', { type: 'button', class: 'small mono', onclick: () => add(id) }, id)),
  );
}
