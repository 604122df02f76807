/** Dark or light: as the system has it, until somebody chooses. */
import { h, say } from './dom.js';

const KEY = 'evalgate.theme';
/** @typedef {'system' | 'light' | 'dark'} Theme */
/** @type {readonly Theme[]} */
const THEMES = ['system', 'light', 'dark'];
const NAMES = { system: 'as the system', light: 'light', dark: 'dark' };

/** Told to whoever draws on a canvas, where style sheets don't reach. */
export const THEME_CHANGED = 'themechanged';

export function themeSwitch() {
  const button = h('button', { type: 'button', class: 'quiet' });
  const show = () => say(button, `Theme: ${NAMES[current()]}`);
  button.addEventListener('click', () => {
    choose(THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length] ?? 'system');
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () =>
    document.dispatchEvent(new Event(THEME_CHANGED)),
  );
  show();
  return button;
}

/** @returns {Theme} */
function current() {
  const chosen = document.documentElement.dataset['theme'];
  return chosen === 'dark' || chosen === 'light' ? chosen : 'system';
}

/** @param {Theme} theme */
function choose(theme) {
  if (theme === 'system') {
    delete document.documentElement.dataset['theme'];
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset['theme'] = theme;
    localStorage.setItem(KEY, theme);
  }
  document.dispatchEvent(new Event(THEME_CHANGED));
}
