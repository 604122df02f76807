/** Questions that the page asks before it does what can't be taken back. */
import { freshId, h, set } from './dom.js';
import { icon } from './icons.js';
import { wordsOf } from './api.js';
import { outcome } from './panel.js';

/**
 * Opens a dialog; it is gone from the page when it closes.
 * @param {string} title
 * @param {...import('./dom.js').Child} body
 */
export function openDialog(title, ...body) {
  const titleId = freshId();
  const dialog = h('dialog', { 'aria-labelledby': titleId }, h('h2', { id: titleId }, title), ...body);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {readonly import('./dom.js').Child[]} body What will be so afterwards.
 * @property {string} yes The label of the button that does it.
 * @property {boolean} [isGrave] Whether it can't be taken back.
 * @property {string} [typed] What has to be typed first.
 * @property {() => Promise<void>} run What is done; while it fails the dialog stays and says why.
 */

/**
 * Asks; resolves to whether it was done.
 * @param {Question} question
 * @returns {Promise<boolean>}
 */
export function ask({ title, body, yes, isGrave = false, typed, run }) {
  return new Promise((resolve) => {
    const told = outcome();
    let isDone = false;
    const input = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', class: 'mono' });
    const confirm = h('button', { type: 'submit', class: isGrave ? 'danger' : 'primary' }, yes);
    const isConfirmed = () => typed === undefined || input.value.trim() === typed;
    const update = () => set(confirm, 'aria-disabled', isConfirmed() ? null : 'true');
    input.addEventListener('input', update);
    /** @param {Event} event */
    const submit = async (event) => {
      event.preventDefault();
      if (confirm.getAttribute('aria-disabled') === 'true') return;
      set(confirm, 'aria-disabled', 'true');
      told.clear();
      try {
        await run();
        isDone = true;
        dialog.close();
      } catch (error) {
        told.failed(wordsOf(error));
        update();
      }
    };
    const form = h(
      'form',
      { onsubmit: (event) => void submit(event) },
      h('div', { class: 'dialog-body' }, ...body),
      typed === undefined
        ? null
        : h('label', { class: 'field' }, h('span', {}, 'Type ', h('code', {}, typed), ' to go on'), input),
      told.element,
      h(
        'div',
        { class: 'dialog-actions' },
        h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        confirm,
      ),
    );
    update();
    const dialog = openDialog(title, form);
    dialog.addEventListener('close', () => resolve(isDone));
  });
}

/**
 * A text with a button that copies it.
 * @param {string} label What is copied.
 * @param {string} text
 */
export function copyable(label, text) {
  const said = h('span', { class: 'copied', role: 'status' });
  const shown = h('code', { class: 'secret' }, text);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = 'copied';
    } catch {
      // Only pages on localhost or https may write to the clipboard: then it is selected, to be copied by hand.
      getSelection()?.selectAllChildren(shown);
      said.textContent = 'selected: copy it with the keyboard';
    }
  };
  return h(
    'div',
    { class: 'copyable' },
    h('div', { class: 'copyable-label' }, label),
    shown,
    h(
      'button',
      { type: 'button', class: 'small', 'aria-label': `Copy ${label}`, onclick: () => void copy() },
      icon('copy'),
      'Copy',
    ),
    said,
  );
}
