/** Creating, editing and rotating keys. A secret is shown once, in the dialog, and is gone from the page when that closes. */
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { call } from './api.js';
import { written } from './format.js';
import { announce, change, refreshAll } from './live.js';
import { durationOf } from './ttl.js';
import { Ask, button, Checkbox, Dialog, Field, FieldError, Form, useFault, useTexts } from './ui.js';

/** @typedef {import('./api.js').Answer<'listKeys'>['keys'][number]} Key */
/** @typedef {(props: { readonly target: Key, readonly close: () => void }) => import('./ui.js').Children} KeyDialog */
/** @typedef {import('./api.js').Answer<'createKey'>} Issued */

const SCOPES = /** @type {const} */ ([
  ['reports.read', 'v1: reports'],
  ['calls.read', 'v2: calls, transcripts and scorecards'],
  ['coaching.read', 'v2: rubrics'],
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
        html`<input readonly value=${issued.token} onFocus=${selectAll} ...${attributes} />`}
    <//>
    <div class="buttons">${button('I have kept it', close, { kind: 'primary' })}</div>
  <//>`;
}

/** @param {{ currentTarget: HTMLInputElement }} event */
const selectAll = (event) => event.currentTarget.select();

/**
 * The form of a key: `fields` draws it, with `offered` below the workspaces, and `body` has what was typed for a call.
 * @param {Pick<Key, 'name' | 'workspaceIds' | 'scopes' | 'limits' | 'from'>} initial
 * @param {string} expiryHelp
 */
function useKeyForm({ name, workspaceIds, scopes: initialScopes, limits, from }, expiryHelp) {
  const texts = {
    name,
    workspaces: workspaceIds.join(' '),
    perMinute: String(limits.perMinute ?? ''),
    perHour: String(limits.perHour ?? ''),
    after: '',
    from: from?.join(' ') ?? '',
  };
  const { typed, set, field } = useTexts(texts, { workspaces: 'workspaceIds', after: 'expiresAt' });
  const [scopes, setScopes] = useState(initialScopes);
  const toggle = (/** @type {string} */ scope) =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  const body = () => ({
    name: typed.name.trim(),
    workspaceIds: words(typed.workspaces),
    scopes,
    perMinute: limit('perMinute', typed.perMinute),
    perHour: limit('perHour', typed.perHour),
    ...expiry(typed.after.trim()),
    from: typed.from.trim() === '' ? null : words(typed.from),
  });
  const fields = (/** @type {import('./ui.js').Children} */ offered) =>
    html`${field('name', 'Name', 'who uses it, and for what')}
      ${field('workspaces', 'Workspaces', 'UUIDs, several with spaces between')} ${offered}
      <fieldset>
        <legend>Scopes</legend>
        <${ScopesFault} />
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
        ${field('after', 'Expires after', expiryHelp)}
      </div>
      ${field('from', 'Addresses', 'that it may be used from, such as 203.0.113.0/24, several with spaces between; empty: any')}`;
  return { typed, set, body, fields };
}

function ScopesFault() {
  const fault = useFault('scopes');
  return fault !== '' && html`<p class="fault" role="alert">${fault}</p>`;
}

/** @param {string} typed Several, with spaces or commas between. */
function words(typed) {
  return typed.split(/[\s,;]+/).filter((word) => word !== '');
}

/** @param {string} member @param {string} typed Empty for the default. */
function limit(member, typed) {
  if (typed.trim() === '') return null;
  if (/^\d{1,10}$/.test(typed.trim())) return Number(typed);
  throw new FieldError(member, `“${typed}” is no whole number. Leave the limit empty for the default.`);
}

/** @param {string} typed How long the key lives from now; empty to leave it as it is. */
function expiry(typed) {
  if (typed === '') return {};
  return { expiresAt: typed === 'never' ? null : new Date(Date.now() + durationOf(typed, 'expiresAt')).toISOString() };
}

const NEW_KEY = { name: '', workspaceIds: [], scopes: [], limits: { perMinute: null, perHour: null }, from: null };

/** @param {{ readonly known: readonly Key[], readonly close: () => void }} props `known`: keys whose workspaces are offered. */
export function Create({ known, close }) {
  const { typed, set, body, fields } = useKeyForm(NEW_KEY, 'such as 90d; empty: never');
  const issue = async () => call('createKey', { body: body() });
  const offered = [...new Set(known.flatMap(({ workspaceIds }) => workspaceIds))].filter(
    (id) => !typed.workspaces.includes(id),
  );
  const add = (/** @type {string} */ id) => set('workspaces', `${typed.workspaces} ${id}`.trim());
  const buttons = offered.slice(0, 4).map((id) => button(`Add ${id}`, () => add(id)));
  return html`<${IssueDialog} title="Create a key" submit="Create" issue=${issue} close=${close}>
    ${fields(html`<div class="buttons">${buttons}</div>`)}
  <//>`;
}

/** @type {KeyDialog} */
export function Edit({ target, close }) {
  const { body, fields } = useKeyForm(target, 'from now, such as 90d; or never; empty: as it is');
  const run = async () => change('editKey', { id: target.keyId, body: body() }, `${target.name} was changed.`);
  return html`<${Ask} title="Edit ${target.name}" submit="Save" run=${run} close=${close}>
    ${fields(null)}
    <p class="hint">In force at once, for requests with the same secret.</p>
  <//>`;
}

/** @type {KeyDialog} */
export function Rotate({ target: { keyId, name }, close }) {
  const { typed, field } = useTexts({ overlap: '24h' });
  const issue = async () =>
    call('rotateKey', { id: keyId, body: { overlap: written(durationOf(typed.overlap, 'overlap')) } });
  return html`<${IssueDialog} title="Rotate ${name}" submit="Rotate" issue=${issue} close=${close}>
    <p>A new key with the same rights and quota is created; the old one works until the overlap is over.</p>
    ${field('overlap', 'Overlap', 'the time to put the new key in place')}
  <//>`;
}
