/** Creating, editing and rotating keys. A secret is shown once, in the dialog, and is gone from the page when that closes. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { call } from './api.js';
import { written } from './format.js';
import { announce, change, refreshAll } from './live.js';
import { durationOf } from './ttl.js';
import { Ask, button, Checkbox, Dialog, Field, Form, useTexts } from './ui.js';

/** @typedef {import('./keys.js').Key} Key */
/** @typedef {import('./api.js').Answer<'createKey'>} Issued */

const SCOPES = /** @type {const} */ ([
  ['reports.read', 'v1: reports'],
  ['calls.read', 'v2: calls and transcripts'],
  ['coaching.read', 'v2: scorecards and rubrics'],
]);

/**
 * A dialog that issues a key with its form, then shows the secret.
 * @param {{ readonly title: string, readonly submit: string, readonly issue: () => Promise<Issued>, readonly close: () => void, readonly children?: import('./ui.js').Children }} props
 */
function IssueDialog({ title, submit, issue, close, children }) {
  const [issued, setIssued] = useState(/** @type {Issued | null} */ (null));
  const run = async () => {
    const result = await issue();
    setIssued(result);
    announce(`The key ${result.key.name} was created. Its secret is shown once.`);
    await refreshAll();
  };
  if (issued === null) {
    return html`<${Dialog} title=${title} close=${close}>
      <${Form} submit=${submit} kind="primary" run=${run} buttons=${button('Cancel', close)}>${children}<//>
    <//>`;
  }
  // Another key, another dialog: it opens with the focus on the secret, which selects it.
  return html`<${Dialog} key="secret" title="The key was created" close=${close}>
    <p>
      <strong>${issued.key.name}</strong> works from now on. This is the only time its secret is shown: the gateway
      keeps only a hash of it.
    </p>
    <${Field} label="Key">
      ${(/** @type {object} */ attributes) =>
        html`<input readonly value=${issued.token} onFocus=${select} ...${attributes} />`}
    <//>
    <div class="buttons">${button('I have kept it', close, { kind: 'primary' })}</div>
  <//>`;
}

/** @param {{ currentTarget: HTMLInputElement }} event */
function select(event) {
  event.currentTarget.select();
}

/**
 * The rights of a key as they are chosen: `fields` draws them, `rights` has them for a body.
 * @param {{ readonly name: string, readonly workspaces: string, readonly perMinute: string, readonly perHour: string }} initial
 * @param {readonly string[]} initialScopes
 */
function useRights(initial, initialScopes) {
  const { typed, set, field } = useTexts(initial);
  const [scopes, setScopes] = useState(initialScopes);
  const toggle = (/** @type {string} */ scope) =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  const rights = () => ({
    name: typed.name.trim(),
    workspaceIds: typed.workspaces.split(/[\s,;]+/).filter((id) => id !== ''),
    scopes,
    perMinute: limit(typed.perMinute),
    perHour: limit(typed.perHour),
  });
  const fields = (
    /** @type {import('./ui.js').Children} */ offered,
    /** @type {import('./ui.js').Children} */ expiry,
  ) =>
    html`${field('name', 'Name', 'who uses it, and for what')}
      ${field('workspaces', 'Workspaces', 'UUIDs, several with spaces between')} ${offered}
      <fieldset>
        <legend>Scopes</legend>
        ${SCOPES.map(
          ([scope, meaning]) =>
            html`<${Checkbox}
              label=${`${scope}: ${meaning}`}
              isChecked=${scopes.includes(scope)}
              toggle=${() => toggle(scope)}
            />`,
        )}
      </fieldset>
      <div class="fields">
        ${field('perMinute', 'Per minute', 'empty: default')} ${field('perHour', 'Per hour', 'empty: default')}
        ${expiry}
      </div>`;
  return { typed, set, rights, fields };
}

/** @param {string} typed Empty for the default. */
function limit(typed) {
  if (typed.trim() === '') return null;
  if (/^\d{1,10}$/.test(typed.trim())) return Number(typed);
  throw new Error(`“${typed}” is no whole number. Leave the limit empty for the default.`);
}

/** @param {string} typed How long the key lives from now. */
function timeAfter(typed) {
  return new Date(Date.now() + durationOf(typed)).toISOString();
}

/** @param {{ readonly known: readonly Key[], readonly close: () => void }} props `known`: keys whose workspaces are offered. */
export function CreateKey({ known, close }) {
  const { typed, set, rights, fields } = useRights({ name: '', workspaces: '', perMinute: '', perHour: '' }, []);
  const expiry = useTexts({ after: '' });
  const issue = async () => {
    const expiresAt = expiry.typed.after.trim() === '' ? null : timeAfter(expiry.typed.after);
    return call('createKey', { body: { ...rights(), expiresAt } });
  };
  const offered = [...new Set(known.flatMap(({ workspaceIds }) => workspaceIds))].filter(
    (id) => !typed.workspaces.includes(id),
  );
  const add = (/** @type {string} */ id) => set('workspaces', `${typed.workspaces} ${id}`.trim());
  const buttons = offered.slice(0, 4).map((id) => button(`Add ${id}`, () => add(id), { kind: 'small' }));
  return html`<${IssueDialog} title="Create a key" submit="Create" issue=${issue} close=${close}>
    ${fields(
      html`<div class="buttons">${buttons}</div>`,
      expiry.field('after', 'Expires after', 'such as 90d; empty: never'),
    )}
  <//>`;
}

/** @param {{ readonly target: Key, readonly close: () => void }} props */
export function EditKey({ target, close }) {
  const { keyId, name, workspaceIds, limits } = target;
  const [perMinute, perHour] = [limits.perMinute, limits.perHour].map((one) => String(one ?? ''));
  const initial = { name, workspaces: workspaceIds.join(' '), perMinute: perMinute ?? '', perHour: perHour ?? '' };
  const { rights, fields } = useRights(initial, target.scopes);
  const expiry = useTexts({ after: '' });
  const run = async () => {
    const typed = expiry.typed.after.trim();
    const end = typed === '' ? {} : { expiresAt: typed === 'never' ? null : timeAfter(typed) };
    await change('editKey', { id: keyId, body: { ...rights(), ...end } }, `${name} was changed.`);
  };
  const help = 'from now, such as 90d; or never; empty: as it is';
  return html`<${Ask} title="Edit ${name}" submit="Save" run=${run} close=${close}>
    ${fields(null, expiry.field('after', 'Expires after', help))}
    <p class="hint">In force at once, for requests with the same secret.</p>
  <//>`;
}

/** @param {{ readonly target: Key, readonly close: () => void }} props */
export function RotateKey({ target: { keyId, name }, close }) {
  const { typed, field } = useTexts({ overlap: '24h' });
  const issue = async () => call('rotateKey', { id: keyId, body: { overlap: written(durationOf(typed.overlap)) } });
  return html`<${IssueDialog} title="Rotate ${name}" submit="Rotate" issue=${issue} close=${close}>
    <p>A new key with the same rights and quota is created; the old one works until the overlap is over.</p>
    ${field('overlap', 'Overlap', 'the time to put the new key in place')}
  <//>`;
}
