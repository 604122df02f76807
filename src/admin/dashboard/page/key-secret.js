/** Creating and rotating keys. A secret is shown once, in the dialog, and is gone from the page when that closes. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { readIssuedKey, readPublicPort } from './answers.js';
import { call } from './api.js';
import { written } from './format.js';
import { refreshAll } from './live.js';
import { durationOf } from './ttl.js';
import { announce, button, Checkbox, Dialog, Field, Form, useTexts } from './ui.js';

/** @typedef {import('./answers.js').Key} Key */
/** @typedef {{ readonly issued: import('./answers.js').IssuedKey, readonly port: number }} Issued */

const SCOPES = /** @type {const} */ ([
  ['reports.read', 'v1: reports'],
  ['calls.read', 'v2: calls and transcripts'],
  ['coaching.read', 'v2: scorecards and rubrics'],
]);
const DEFAULT_PORT = 8080;

/**
 * A dialog that issues a key with its form, then shows the secret.
 * @param {{ readonly title: string, readonly submit: string, readonly path: string, readonly bodyOf: () => object, readonly close: () => void, readonly children?: import('./ui.js').Children }} props
 */
function IssueDialog({ title, submit, path, bodyOf, close, children }) {
  const [result, setResult] = useState(/** @type {Issued | null} */ (null));
  const run = async () => {
    const issued = await call(path, readIssuedKey, { method: 'POST', body: bodyOf() });
    setResult({ issued, port: await publicPort() });
    announce(`The key ${issued.key.name} was created. Its secret is shown once.`);
    await refreshAll();
  };
  if (result !== null) {
    // Another key, another dialog: it opens with the focus on the secret, which selects it.
    return html`<${Dialog} key="secret" title="The key was created" close=${close}>
      <${Secret} ...${result} close=${close} />
    <//>`;
  }
  const cancel = button('Cancel', close);
  return html`<${Dialog} title=${title} close=${close}>
    <${Form} submit=${submit} kind="primary" run=${run} buttons=${cancel}>${children}<//>
  <//>`;
}

/** The configured port of the public listener. Never rejects: a secret that was issued has to be shown. */
async function publicPort() {
  try {
    const { value } = (await call('api/config', readPublicPort)).settings.server.port;
    // 0: any free one; only the log knows which.
    return value === 0 ? DEFAULT_PORT : value;
  } catch {
    return DEFAULT_PORT;
  }
}

/** @param {Issued & { readonly close: () => void }} props */
function Secret({ issued: { key, token }, port, close }) {
  const [workspace = ''] = key.workspaceIds;
  const path = key.scopes.includes('calls.read')
    ? '/v2/calls'
    : key.scopes.includes('reports.read')
      ? `/v1/workspaces/${workspace}/reports`
      : '/v2/scorecards/ID/rubric';
  const curl = `curl -H 'Authorization: Bearer ${token}' '${location.protocol}//${location.hostname}:${port}${path}'`;
  return html`<p>
      <strong>${key.name}</strong> works from now on. This is the only time its secret is shown: the gateway keeps only
      a hash of it.
    </p>
    ${copyable('Key', token)} ${copyable('To try it', curl)}
    <div class="buttons">${button('I have kept it', close, { kind: 'primary' })}</div>`;
}

/** @param {{ currentTarget: HTMLInputElement }} event */
function select(event) {
  event.currentTarget.select();
}

/**
 * A text to copy: it is selected as it gets the focus.
 * @param {string} label
 * @param {string} text
 */
function copyable(label, text) {
  return html`<${Field} label=${label}>
    ${(/** @type {object} */ attributes) => html`<input readonly value=${text} onFocus=${select} ...${attributes} />`}
  <//>`;
}

/** @param {{ readonly known: readonly Key[], readonly close: () => void }} props `known`: keys whose workspaces are offered. */
export function CreateKey({ known, close }) {
  const { typed, set, field } = useTexts({ name: '', workspaces: '', perMinute: '', perHour: '', expires: '' });
  const [scopes, setScopes] = useState(/** @type {readonly string[]} */ ([]));
  const bodyOf = () => ({
    name: typed.name.trim(),
    workspaceIds: typed.workspaces.split(/[\s,;]+/).filter((id) => id !== ''),
    scopes,
    ...limit('perMinute', typed.perMinute),
    ...limit('perHour', typed.perHour),
    ...expiry(typed.expires),
  });
  const offered = [...new Set(known.flatMap(({ workspaceIds }) => workspaceIds))].filter(
    (id) => !typed.workspaces.includes(id),
  );
  const add = (/** @type {string} */ id) => set('workspaces', `${typed.workspaces} ${id}`.trim());
  const toggle = (/** @type {string} */ scope) =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  const boxes = SCOPES.map(([scope, meaning]) => {
    const label = `${scope}: ${meaning}`;
    return html`<${Checkbox} label=${label} isChecked=${scopes.includes(scope)} toggle=${() => toggle(scope)} />`;
  });
  return html`<${IssueDialog} title="Create a key" submit="Create" path="api/keys" bodyOf=${bodyOf} close=${close}>
    ${field('name', 'Name', 'who uses it, and for what')}
    ${field('workspaces', 'Workspaces', 'UUIDs, several with spaces between')}
    <div class="buttons">${offered.slice(0, 4).map((id) => button(`Add ${id}`, () => add(id), { kind: 'small' }))}</div>
    <fieldset>
      <legend>Scopes</legend>
      ${boxes}
    </fieldset>
    <div class="fields">
      ${field('perMinute', 'Per minute', 'empty: default')} ${field('perHour', 'Per hour', 'empty: default')}
      ${field('expires', 'Expires after', 'such as 90d; empty: never')}
    </div>
  <//>`;
}

/** @param {string} typed How long the key lives. */
function expiry(typed) {
  return typed.trim() === '' ? {} : { expiresAt: new Date(Date.now() + durationOf(typed)).toISOString() };
}

/**
 * @param {string} name
 * @param {string} typed
 */
function limit(name, typed) {
  if (typed.trim() === '') return {};
  if (/^\d{1,10}$/.test(typed.trim())) return { [name]: Number(typed) };
  throw new Error(`“${typed}” is no whole number. Leave the limit empty for the default.`);
}

/** @param {{ readonly target: Key, readonly close: () => void }} props */
export function RotateKey({ target: { keyId, name }, close }) {
  const { typed, field } = useTexts({ overlap: '24h' });
  const bodyOf = () => ({ overlap: written(durationOf(typed.overlap)) });
  const path = `api/keys/${encodeURIComponent(keyId)}/rotate`;
  return html`<${IssueDialog} title="Rotate ${name}" submit="Rotate" path=${path} bodyOf=${bodyOf} close=${close}>
    <p>A new key with the same rights and quota is created; the old one works until the overlap is over.</p>
    ${field('overlap', 'Overlap', 'the time to put the new key in place')}
  <//>`;
}
