/** The Keys view: the keys, their use, and the audit. */
import { html } from 'htm/preact';
import { Audit } from './audit.js';
import { count, moment, NONE } from './format.js';
import { Create, Edit, Rotate } from './key-forms.js';
import { change, live } from './live.js';
import { useStore } from './store.js';
import { Ask, button, Panel, Sign, table, useDialog, useMay, useTexts, whose } from './ui.js';

/** @typedef {import('./key-forms.js').Key} Key */
/** @typedef {ReturnType<typeof useDialog>['open']} Open */
/** @typedef {import('./key-forms.js').KeyDialog} KeyDialog */
/** @typedef {{ readonly requests: number, readonly refused: number } | null} Use Null while it is not known. */

export function KeysView() {
  const may = useMay();
  return html`<div class="view">
    <${Panel} id="keys" title="Keys" of=${live.keys} show=${Keys} />
    ${may('audit') && html`<${Panel} id="audit" title="Audit" of=${live.audit} show=${Audit} />`}
  </div>`;
}

const ORDER = ['active', 'deprecated', 'revoked'];
/** Keys beyond this are found by the filter. */
const MAX_ROWS = 100;

/** @param {{ readonly data: readonly Key[] }} props */
function Keys({ data }) {
  const { typed, field } = useTexts({ filter: '' });
  const { dialog, open } = useDialog();
  const mayChange = useMay()('editKey');
  const { data: uses, error } = useStore(live.keyUse);
  const useOf = (/** @type {string} */ id) =>
    uses === null ? null : (uses.keys.find(({ keyId }) => keyId === id) ?? { requests: 0, refused: 0 });
  const sought = typed.filter.trim().toLowerCase();
  const found = data
    .filter((key) => [key.name, key.keyId, ...key.workspaceIds].some((text) => text.toLowerCase().includes(sought)))
    .toSorted((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || b.createdAt.localeCompare(a.createdAt));
  const columns = ['Key', 'Status', 'Scopes', 'Workspaces', 'Limits', 'Expires'];
  const rows = found.slice(0, MAX_ROWS).map((key) => rowOf(key, useOf(key.keyId), mayChange ? open : null));
  const create = () => open((close) => html`<${Create} known=${data} close=${close} />`);
  return html`${mayChange && html`<div>${button('Create a key …', create, { kind: 'primary' })}</div>`}
  ${data.length > 5 && field('filter', 'Filter by name, id or workspace')}
  ${error === null ? uses !== null && whose(uses) : html`<p>The use of keys is not known now: ${error}</p>`}
  ${table(
    'Keys',
    [...columns, '#Requests', '#429s', 'Last used', ''],
    rows,
    data.length === 0 ? 'There are no keys yet.' : 'No key matches the filter.',
  )}
  ${found.length > MAX_ROWS && html`<p class="hint">The first ${MAX_ROWS} of ${count(found.length)} keys.</p>`}
  ${dialog}`;
}

/**
 * @param {Key} key
 * @param {Use} use
 * @param {Open | null} open Null if the person may not change it.
 */
function rowOf(key, use, open) {
  const { keyId, name, status, scopes, workspaceIds, expiresAt, lastUsedAt, from } = key;
  const [first = '', ...others] = workspaceIds;
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  const kind = status === 'active' ? 'good' : status === 'deprecated' ? 'warn' : 'bad';
  return {
    key: keyId,
    cells: [
      html`${name}
        <code class="sub id">${keyId}</code>
        ${from !== null && html`<code class="sub">from ${from.join(', ')}</code>`}`,
      html`<${Sign} kind=${kind} />${status}`,
      scopes.join(', '),
      html`<code title=${workspaceIds.join(' ')}>${first.slice(0, 8)}…</code
        >${others.length > 0 && ` and ${others.length} more`}`,
      limitsText(key.limits),
      expiresAt === null ? 'never' : `${isExpired ? 'expired ' : ''}${moment(expiresAt)}`,
      use === null ? NONE : count(use.requests),
      use === null ? NONE : count(use.refused),
      lastUsedAt === null ? 'never' : moment(lastUsedAt),
      status === 'revoked' || open === null ? null : actionsOf(key, open),
    ],
  };
}

/** @param {Key['limits']} limits */
function limitsText({ perMinute, perHour }) {
  const minute = perMinute === null ? [] : [`${count(perMinute)}/min`];
  const parts = perHour === null ? minute : [...minute, `${count(perHour)}/h`];
  return parts.length === 0 ? 'default' : parts.join(', ');
}

/** @param {Key} target @param {Open} open */
function actionsOf(target, open) {
  const actions = target.status === 'active' ? { Rotate, Edit, Deprecate, Revoke } : { Edit, Activate, Revoke };
  return Object.entries(actions).map(([name, dialog]) => {
    const ask = () => open((close) => html`<${dialog} target=${target} close=${close} />`);
    const kind = dialog === Revoke ? 'danger' : '';
    return button(`${name} …`, ask, { kind, name: `${name} ${target.name}` });
  });
}

/** @type {KeyDialog} */
function Deprecate({ target: { keyId, name }, close }) {
  const run = () => change('editKey', { id: keyId, body: { status: 'deprecated' } }, `${name} is deprecated.`);
  return html`<${Ask} title="Deprecate ${name}?" submit="Deprecate" run=${run} close=${close}>
    <p>Its holder gets 403 from now on. It can be activated again.</p>
    <p><code>${keyId}</code></p>
  <//>`;
}

/** @type {KeyDialog} */
function Activate({ target: { keyId, name }, close }) {
  const run = () => change('editKey', { id: keyId, body: { status: 'active' } }, `${name} is active.`);
  return html`<${Ask} title="Activate ${name} again?" submit="Activate" run=${run} close=${close}>
    <p>Its holder can call again.</p>
    <p><code>${keyId}</code></p>
  <//>`;
}

/** @type {KeyDialog} */
function Revoke({ target: { keyId, name }, close }) {
  const run = () => change('revokeKey', { id: keyId }, `${name} is revoked.`);
  return html`<${Ask} title="Revoke ${name}?" submit="Revoke for good" kind="danger" run=${run} close=${close}>
    <p>Its holder gets 403 from now on, for good: a revoked key can’t be activated again.</p>
    <p><code>${keyId}</code></p>
  <//>`;
}
