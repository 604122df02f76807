/** Creating a key. Its secret is shown once, in the dialog, and is gone from the page when that closes. */
import { copyable, openDialog } from './dialogs.js';
import { announce, fill, h } from './dom.js';
import { keyFields, keyRequest } from './key-form.js';
import { act, outcome } from './panel.js';
import { readIssuedKey, readPublicPort } from './shapes.js';

/** @typedef {ReturnType<typeof readIssuedKey>} IssuedKey */

const DEFAULT_PORT = 8080;

/**
 * @param {import('./times-change.js').Means} means
 * @param {readonly import('./shapes.js').Key[]} known Keys whose workspaces are offered.
 */
export function createKey({ api, changed }, known) {
  const told = outcome();
  const fields = keyFields(known);
  const submit = h('button', { type: 'submit', class: 'primary' }, 'Create');
  const create = async () => {
    const body = keyRequest(fields.read(), Date.now());
    const issued = await api.call('api/keys', readIssuedKey, { method: 'POST', body });
    showSecret(dialog, issued, await publicPort(api));
    await changed();
  };
  const form = h(
    'form',
    {
      onsubmit: (event) => {
        event.preventDefault();
        void act(submit, told, create);
      },
    },
    ...fields.elements,
    told.element,
    h(
      'div',
      { class: 'dialog-actions' },
      h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
      submit,
    ),
  );
  const dialog = openDialog('Create a key', form);
  fields.name.focus();
}

/**
 * The port of the public listener as it is configured. Never rejects: a secret that was issued has to be shown.
 * @param {import('./api.js').Api} api
 */
async function publicPort(api) {
  try {
    const { settings } = await api.call('api/config', readPublicPort);
    const { value } = settings.server.port;
    // 0: any free one, and only its log knows which.
    return value === 0 ? DEFAULT_PORT : value;
  } catch {
    return DEFAULT_PORT;
  }
}

/**
 * A path that the key can read.
 * @param {IssuedKey['key']} key
 */
function examplePath({ scopes, workspaceIds }) {
  if (scopes.includes('calls.read')) return '/v2/calls';
  if (scopes.includes('reports.read')) return `/v1/workspaces/${workspaceIds[0] ?? ''}/reports`;
  return '/v2/scorecards/ID/rubric';
}

/**
 * @param {HTMLDialogElement} dialog
 * @param {IssuedKey} issued
 * @param {number} port
 */
function showSecret(dialog, { key, token }, port) {
  const heading = dialog.querySelector('h2');
  if (heading !== null) heading.textContent = 'The key was created';
  const close = h('button', { type: 'button', class: 'primary', onclick: () => dialog.close() }, 'I have kept it');
  const base = `${location.protocol}//${location.hostname}:${port}`;
  fill(
    dialog,
    heading,
    h(
      'p',
      {},
      h('strong', {}, key.name),
      ' can call from now on. This is the only time its secret is shown: it is not kept here, and nobody can look it up.',
    ),
    copyable('Key', token),
    copyable('To try it', `curl -H 'Authorization: Bearer ${token}' '${base}${examplePath(key)}'`),
    h('div', { class: 'dialog-actions' }, close),
  );
  announce(`The key ${key.name} was created. Its secret is shown once.`);
  close.focus();
}
