/** The API keys: who may call, what they may see; creating, deprecating and revoking them. */
import { ask } from './dialogs.js';
import { announce, h, keep } from './dom.js';
import { count, moment } from './format.js';
import { icon } from './icons.js';
import { createKey } from './key-create.js';
import { outcome, panel } from './panel.js';
import { readKey } from './shapes.js';

/** @typedef {import('./shapes.js').Key} Key */
/** @typedef {import('./times-change.js').Means} Means */

/**
 * @param {Means} means
 * @param {import('./resource.js').Resource<{ readonly keys: readonly Key[] }>} keys
 */
export function keysPanel(means, keys) {
  const body = h('tbody');
  const empty = h('p', { class: 'empty', hidden: true }, 'No keys were issued yet: nobody can call.');
  const told = outcome();
  const draw = () => {
    const all = keys.value?.keys ?? [];
    empty.hidden = all.length > 0;
    keep(body, sorted(all), { key: ({ keyId }) => keyId, make: (key) => rowOf(means, key) });
  };
  const create = h(
    'button',
    { type: 'button', class: 'small', onclick: () => createKey(means, keys.value?.keys ?? []) },
    'Create a key …',
  );
  return panel(
    { id: 'keys', title: 'Keys', sources: [keys], draw, actions: [create] },
    h(
      'div',
      { class: 'scroll tall', tabindex: 0, role: 'group', 'aria-label': 'Keys' },
      h(
        'table',
        { class: 'dense' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...['Key', 'Status', 'Scopes', 'Workspaces', 'Limits', 'Expires', 'Last used', ''].map((name) =>
              h('th', { scope: 'col' }, name === '' ? h('span', { class: 'hidden' }, 'Actions') : name),
            ),
          ),
        ),
        body,
      ),
    ),
    empty,
    told.element,
  );
}

const ORDER = ['active', 'deprecated', 'revoked'];

/**
 * Those that can still be used first, then the newest first.
 * @param {readonly Key[]} keys
 */
function sorted(keys) {
  return keys.toSorted((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || b.createdAt - a.createdAt);
}

const KINDS = new Map([
  ['active', /** @type {const} */ ('good')],
  ['deprecated', /** @type {const} */ ('warn')],
]);
const ICONS = /** @type {const} */ ({ good: 'done', warn: 'warning', bad: 'bad' });

/**
 * @param {Means} means
 * @param {Key} key
 */
function rowOf(means, key) {
  const { keyId, name, status, scopes, workspaceIds, limits, expiresAt, lastUsedAt } = key;
  const kind = KINDS.get(status) ?? 'bad';
  const nowMs = Date.now();
  const [first = '', ...others] = workspaceIds;
  const isExpired = expiresAt !== null && expiresAt <= nowMs;
  return h(
    'tr',
    { 'data-status': status },
    h('th', { scope: 'row' }, name, h('code', { class: 'sub' }, keyId)),
    h('td', { class: 'member-status', 'data-kind': kind }, icon(ICONS[kind]), status),
    h('td', { class: 'wrap' }, scopes.join(', ')),
    h(
      'td',
      {},
      h('code', { title: workspaceIds.join('\n') }, first),
      others.length > 0 ? ` and ${others.length} more` : '',
    ),
    h('td', {}, limitsWords(limits)),
    h('td', {}, expiresAt === null ? 'never' : `${isExpired ? 'expired ' : ''}${moment(expiresAt, nowMs)}`),
    h('td', {}, lastUsedAt === null ? 'never' : moment(lastUsedAt, nowMs)),
    h('td', { class: 'row-actions' }, ...actionsOf(means, key)),
  );
}

/** @param {Key['limits']} limits */
function limitsWords({ perMinute, perHour }) {
  if (perMinute === null && perHour === null) return 'the gateway’s';
  return [perMinute === null ? '' : `${count(perMinute)}/min`, perHour === null ? '' : `${count(perHour)}/h`]
    .filter((text) => text !== '')
    .join(', ');
}

/**
 * @param {Means} means
 * @param {Key} key
 */
function actionsOf(means, key) {
  if (key.status === 'revoked') return [];
  const isActive = key.status === 'active';
  const status = isActive ? 'deprecated' : 'active';
  return [
    h(
      'button',
      {
        type: 'button',
        class: 'small',
        'data-focus': 'status',
        'aria-label': `${isActive ? 'Deprecate' : 'Activate'} ${key.name}`,
        onclick: () => void changeStatus(means, key, status),
      },
      isActive ? 'Deprecate …' : 'Activate …',
    ),
    h(
      'button',
      {
        type: 'button',
        class: 'small danger',
        'data-focus': 'revoke',
        'aria-label': `Revoke ${key.name}`,
        onclick: () => void revoke(means, key),
      },
      'Revoke …',
    ),
  ];
}

/**
 * @param {Means} means
 * @param {Key} key
 * @param {'active' | 'deprecated'} status
 */
function changeStatus({ api, changed }, key, status) {
  const isEnding = status === 'deprecated';
  return ask({
    title: isEnding ? `Deprecate ${key.name}?` : `Make ${key.name} active again?`,
    body: [
      h(
        'p',
        {},
        isEnding ? 'Its holder gets 403 from now on. It can be made active again.' : 'Its holder can call again.',
      ),
      h('p', {}, h('code', {}, key.keyId)),
    ],
    yes: isEnding ? 'Deprecate' : 'Activate',
    run: async () => {
      await api.call(`api/keys/${encodeURIComponent(key.keyId)}`, readKey, { method: 'PATCH', body: { status } });
      announce(`${key.name} is ${status}.`);
      await changed();
    },
  });
}

/**
 * @param {Means} means
 * @param {Key} key
 */
function revoke({ api, changed }, key) {
  return ask({
    title: `Revoke ${key.name}?`,
    body: [
      h('p', {}, 'Its holder gets 403 from now on, for good: a revoked key can’t be made active again.'),
      h('p', {}, h('code', {}, key.keyId)),
    ],
    yes: 'Revoke for good',
    isGrave: true,
    run: async () => {
      await api.call(`api/keys/${encodeURIComponent(key.keyId)}`, readKey, { method: 'DELETE' });
      announce(`${key.name} is revoked.`);
      await changed();
    },
  });
}
