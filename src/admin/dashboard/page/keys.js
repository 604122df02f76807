/** The Keys view: the keys, who uses them, and the audit. */
import { html } from 'htm/preact';
import { readKey } from './answers.js';
import { call } from './api.js';
import { AuditPanel } from './audit.js';
import { count, moment } from './format.js';
import { CreateKey, RotateKey } from './key-secret.js';
import { live, refreshAll } from './live.js';
import { announce, Ask, button, Panel, Sign, table, useDialog, useTexts } from './ui.js';

/** @typedef {import('./answers.js').Key} Key */
/** @typedef {ReturnType<typeof useDialog>['open']} Open */
/** @typedef {(props: { readonly target: Key, readonly close: () => void }) => import('./ui.js').Children} KeyDialog */

export function KeysView() {
  return html`<div class="view">
    <${Panel} id="keys" title="Keys" of=${live.keys} show=${Keys} />
    <${AuditPanel} />
  </div>`;
}

const ORDER = ['active', 'deprecated', 'revoked'];
/** Keys beyond this are found by the filter. */
const MOST_ROWS = 100;

/** @param {{ readonly data: readonly Key[] }} props */
function Keys({ data }) {
  const { typed, field } = useTexts({ filter: '' });
  const { dialog, open } = useDialog();
  const sought = typed.filter.trim().toLowerCase();
  const found = data
    .filter((key) => [key.name, key.keyId, ...key.workspaceIds].some((text) => text.toLowerCase().includes(sought)))
    .toSorted((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || b.createdAt - a.createdAt);
  const columns = ['Key', 'Status', 'Scopes', 'Workspaces', 'Limits', 'Expires', 'Last used', ''];
  const rows = found.slice(0, MOST_ROWS).map((key) => rowOf(key, open));
  const create = () => open((close) => html`<${CreateKey} known=${data} close=${close} />`);
  return html`<div>${button('Create a key …', create, { kind: 'primary' })}</div>
    ${data.length > 5 && field('filter', 'Filter by name, id or workspace')}
    ${table('Keys', columns, rows, data.length === 0 ? 'There are no keys yet.' : 'No key matches the filter.')}
    ${found.length > MOST_ROWS && html`<p class="hint">The first ${MOST_ROWS} of ${count(found.length)} keys.</p>`}
    ${dialog}`;
}

/**
 * @param {Key} key
 * @param {Open} open
 */
function rowOf(key, open) {
  const { keyId, name, status, scopes, workspaceIds, expiresAt, lastUsedAt } = key;
  const [first = '', ...others] = workspaceIds;
  const isExpired = expiresAt !== null && expiresAt <= Date.now();
  const kind = status === 'active' ? 'good' : status === 'deprecated' ? 'warn' : 'bad';
  return {
    key: keyId,
    cells: [
      html`${name} <code class="sub">${keyId}</code>`,
      html`<${Sign} kind=${kind} /> ${status}`,
      scopes.join(', '),
      html`<code title=${workspaceIds.join(' ')}>${first.slice(0, 8)}…</code
        >${others.length > 0 && ` and ${others.length} more`}`,
      limitsText(key.limits),
      expiresAt === null ? 'never' : `${isExpired ? 'expired ' : ''}${moment(expiresAt)}`,
      lastUsedAt === null ? 'never' : moment(lastUsedAt),
      status === 'revoked' ? null : actionsOf(key, open),
    ],
  };
}

/** @param {Key['limits']} limits */
function limitsText({ perMinute, perHour }) {
  const parts = [
    ...(perMinute === null ? [] : [`${count(perMinute)}/min`]),
    ...(perHour === null ? [] : [`${count(perHour)}/h`]),
  ];
  return parts.length === 0 ? 'default' : parts.join(', ');
}

/**
 * @param {Key} target
 * @param {Open} open
 */
function actionsOf(target, open) {
  const action = (/** @type {string} */ name, /** @type {KeyDialog} */ dialog, kind = '') => {
    const ask = () => open((close) => html`<${dialog} target=${target} close=${close} />`);
    return button(`${name} …`, ask, { kind: `small ${kind}`, name: `${name} ${target.name}` });
  };
  const isActive = target.status === 'active';
  return [
    isActive && action('Rotate', RotateKey),
    action(isActive ? 'Deprecate' : 'Activate', ChangeStatus),
    action('Revoke', Revoke, 'danger'),
  ];
}

/** @param {{ readonly target: Key, readonly close: () => void }} props */
function ChangeStatus({ target: { keyId, name, status }, close }) {
  const isEnding = status === 'active';
  const run = async () => {
    const body = { status: isEnding ? 'deprecated' : 'active' };
    await call(`api/keys/${encodeURIComponent(keyId)}`, readKey, { method: 'PATCH', body });
    announce(`${name} is ${body.status}.`);
    await refreshAll();
  };
  return html`<${Ask}
    title=${isEnding ? `Deprecate ${name}?` : `Activate ${name} again?`}
    submit=${isEnding ? 'Deprecate' : 'Activate'}
    run=${run}
    close=${close}
  >
    <p>${isEnding ? 'Its holder gets 403 from now on. It can be activated again.' : 'Its holder can call again.'}</p>
    <p><code>${keyId}</code></p>
  <//>`;
}

/** @param {{ readonly target: Key, readonly close: () => void }} props */
function Revoke({ target: { keyId, name }, close }) {
  const run = async () => {
    await call(`api/keys/${encodeURIComponent(keyId)}`, readKey, { method: 'DELETE' });
    announce(`${name} is revoked.`);
    await refreshAll();
  };
  return html`<${Ask} title="Revoke ${name}?" submit="Revoke for good" kind="danger" run=${run} close=${close}>
    <p>Its holder gets 403 from now on, for good: a revoked key can’t be activated again.</p>
    <p><code>${keyId}</code></p>
  <//>`;
}
