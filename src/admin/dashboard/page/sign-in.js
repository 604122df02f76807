/** Asks for the admin token. It is kept for this tab alone, until the tab is closed or it is signed out. */
import { h } from './dom.js';
import { openDialog } from './dialogs.js';
import { icon } from './icons.js';

/**
 * @param {string} reason Why the form is there again; empty the first time.
 * @returns {Promise<string>} The token.
 */
export function askForToken(reason) {
  return new Promise((resolve) => {
    const input = h('input', {
      type: 'password',
      autocomplete: 'current-password',
      required: true,
      spellcheck: 'false',
    });
    const form = h(
      'form',
      {
        onsubmit: (event) => {
          event.preventDefault();
          const token = input.value.trim();
          if (token === '' || /\s/.test(token)) return;
          dialog.close();
          resolve(token);
        },
      },
      h('p', {}, 'This gateway wants one of the tokens of its ADMIN_TOKEN. It is kept until this tab is closed.'),
      reason === ''
        ? null
        : h('div', { class: 'outcome', 'data-kind': 'failed', role: 'alert' }, icon('warning'), h('p', {}, reason)),
      h('label', { class: 'field' }, h('span', {}, 'Admin token'), input),
      h('div', { class: 'dialog-actions' }, h('button', { type: 'submit', class: 'primary' }, 'Sign in')),
    );
    const dialog = openDialog('Sign in', form);
    dialog.classList.add('sign-in');
    // There is nothing behind it to go back to.
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    input.focus();
  });
}
