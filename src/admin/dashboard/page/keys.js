/** The Keys view: the keys, who uses them, and the audit. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { readKey } from './answers.js';
import { call } from './api.js';
import { AuditPanel } from './audit.js';
import { count, moment } from './format.js';
import { CreateKey, RotateKey } from './key-secret.js';
import { live, refreshAll } from './live.js';
import { announce, Ask, Panel, Sign, table, useTexts } from './ui.js';

/** @typedef {import('./answers.js').Key} Key */
/** @typedef {(dialog: import('./ui.js').Children) => void} Show Opens a dialog; null closes it. */

export function KeysView() {
  return html`<div class="view">
    <${Panel} id="keys" title="Keys" of=${live.keys} show=${Keys} /><${AuditPanel} />
  </div>`;
}

const ORDER = ['active', 'deprecated', 'revoked'];
/** Keys beyond this are found by the filter. */
const MOST_ROWS = 100;

/** @param {{ readonly data: readonly Key[] }} props */
function Keys({ data }) {
  const { typed, field } = useTexts({ filter: '' });
  const [dialog, setDialog] = useState(/** @type {import('./ui.js').Children} */ (null));
  const sought = typed.filter.trim().toLowerCase();
  const found = data
    .filter((key) => [key.name, key.keyId, ...key.workspaceIds].some((text) => text.toLowerCase().includes(sought)))
    .toSorted((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || b.createdAt - a.createdAt);
  const columns = ['Key', 'Status', 'Scopes', 'Workspaces', 'Limits', 'Expires', 'Last used', ''];
  const rows = found.slice(0, MOST_ROWS).map((key) => rowOf(key, setDialog));
  const create = () => setDialog(html`<${CreateKey} known=${data} close=${() => setDialog(null)} />`);
  return html`<div><button type="button" class="primary" onClick=${create}>Create a key …</button></div>
    ${data.length > 5 && field('filter', 'Filter by name, id or workspace')}
    ${table('Keys', columns, rows, data.length === 0 ? 'There are no keys yet.' : 'No key matches the filter.')}
    ${found.length > MOST_ROWS && html`<p class="hint">The first ${MOST_ROWS} of ${count(found.length)} keys.</p>`}
    ${dialog}`;
}

/**
 * @param {Key} key
 * @param {Show} show
 */
function rowOf(key, show) {
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
      status === 'revoked' ? null : actionsOf(key, show),
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
 * @param {Show} show
 */
function actionsOf(target, show) {
  const close = () => show(null);
  const button = (
    /** @type {string} */ name,
    /** @type {import('preact').FunctionComponent<any>} */ dialog,
    kind = '',
  ) =>
    html`<button
      type="button"
      class="small ${kind}"
      aria-label="${name} ${target.name}"
      onClick=${() => show(html`<${dialog} target=${target} close=${close} />`)}
    >
      ${name} …
    </button>`;
  return [
    target.status === 'active' && button('Rotate', RotateKey),
    button(target.status === 'active' ? 'Deprecate' : 'Activate', ChangeStatus),
    button('Revoke', Revoke, 'danger'),
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
