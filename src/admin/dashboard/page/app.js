/** The page: who is signed in, whether all is well, and the three views. */
import { html } from 'htm/preact';
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { hasToken, session, signIn, signOut } from './api.js';
import { CacheView } from './cache.js';
import { moment, roughly } from './format.js';
import { HealthView } from './health.js';
import { KeysView } from './keys.js';
import { announce, live, refreshAll, startPolling } from './live.js';
import { useStore } from './store.js';
import { button, Form, Sign, TextField, useMay } from './ui.js';

/** Each with the endpoint that its reader must be allowed. */
const VIEWS = /** @type {const} */ ([
  ['health', 'Health', HealthView, 'history'],
  ['cache', 'Cache', CacheView, 'cacheStats'],
  ['keys', 'Keys', KeysView, 'listKeys'],
]);
/** @typedef {typeof VIEWS[number]} View */

function App() {
  const { isOpen } = useStore(session);
  const may = useMay();
  const views = VIEWS.filter(([, , , route]) => may(route));
  const shown = useView(views);
  return html`<${Header} views=${views} current=${shown?.[0] ?? ''} />
    <main>
      <${StatusBar} />
      ${isOpen ? shown !== undefined && html`<${shown[2]} />` : html`<${SignIn} />`}
    </main>`;
}

/**
 * The view that the address names; the first if it names none.
 * @param {readonly View[]} views
 */
function useView(views) {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return views.find(([id]) => hash === `#${id}`) ?? views[0];
}

/** @param {{ readonly views: readonly View[], readonly current: string }} props */
function Header({ views, current }) {
  const { isOpen } = useStore(session);
  return html`<header class="top">
    <h1>evalgate</h1>
    <nav aria-label="Views">
      ${views.map(
        ([id, name]) => html`<a href="#${id}" aria-current=${id === current ? 'page' : undefined}>${name}</a>`,
      )}
    </nav>
    <div class="tools">
      ${isOpen && html`<${Who} />`}
      <${ThemeSwitch} />
      ${isOpen && hasToken() && button('Sign out', signOut)}
    </div>
  </header>`;
}

function Who() {
  const { data } = useStore(live.who);
  return html`<span
    >${data !== null && (hasToken() ? `Signed in as ${data.who} (${data.role})` : 'Not signed in')}</span
  >`;
}

/** A token has no other characters. */
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** Asks for the token; the rest of the page is away until the gateway accepts one. */
function SignIn() {
  const { refusal } = useStore(session);
  const [token, setToken] = useState('');
  const run = async () => {
    signIn(token.trim());
    await refreshAll();
  };
  return html`<section class="panel" aria-labelledby="sign-in">
    <h2 id="sign-in">Sign in</h2>
    <p>This gateway asks for one of the tokens of its ADMIN_TOKEN. It is kept until this tab is closed.</p>
    <${Form} submit="Sign in" kind="primary" run=${run} isOff=${!VISIBLE_ASCII.test(token.trim())}>
      <${TextField}
        label="Admin token"
        rest=${{ type: 'password', autofocus: true }}
        value=${token}
        onText=${setToken}
        fault=${refusal}
      />
    <//>
  </section>`;
}

/** Listed by readiness as a dependency, but it is somebody's will and no trouble. */
const MAINTENANCE = 'maintenance';

/**
 * The state of the gateway, in a word and a sentence.
 * @param {import('./api.js').Answer<'readyz'>} readiness
 * @returns {{ readonly kind: import('./ui.js').Kind, readonly word: string, readonly sentence: string }}
 */
function overall({ status, dependencies }) {
  if (status === 'starting') return { kind: 'bad', word: 'Starting', sentence: 'This process serves no requests yet.' };
  if (status === 'draining') {
    return { kind: 'bad', word: 'Draining', sentence: 'This process is shutting down; send requests elsewhere.' };
  }
  const degraded = dependencies.filter((one) => one.status === 'degraded').map(({ name }) => name);
  const troubled = degraded.filter((name) => name !== MAINTENANCE);
  if (troubled.length > 0) {
    return { kind: 'warn', word: 'Degraded', sentence: `Some requests may fail. In trouble: ${troubled.join(', ')}.` };
  }
  if (degraded.length > 0) {
    return { kind: 'warn', word: 'Maintenance', sentence: 'The store is not called; only copies are served.' };
  }
  return { kind: 'good', word: 'Ready', sentence: 'Requests are served, and nothing is known to be in trouble.' };
}

function StatusBar() {
  const may = useMay();
  const { data, atMs, error } = useStore(live.readiness);
  const asOf = data === null ? '' : ` What is shown is from ${moment(atMs)}.`;
  const { kind, word, sentence } =
    error !== null
      ? { kind: 'bad', word: 'No answer', sentence: `${error}${asOf}` }
      : data === null
        ? { kind: 'unknown', word: 'Loading …', sentence: '' }
        : overall(data);
  useEffect(() => {
    document.title = kind === 'good' ? 'evalgate' : `${word} · evalgate`;
    announce(`${word}. ${sentence}`);
    // The gateway is back, or has changed: everything on the screen is fetched at once.
    if (error === null) void refreshAll();
  }, [kind, word]);
  return html`<div class="status">
    <p>
      <${Sign} kind=${kind} /><strong>${word}</strong> ${sentence}
      ${may('showMaintenance') && html`<${MaintenanceEnd} />`}
    </p>
  </div>`;
}

function MaintenanceEnd() {
  const { data } = useStore(live.maintenance);
  if (data === null || data.until === null || !session.value.isOpen) return null;
  const leftMs = Date.parse(data.until) - Date.now();
  if (leftMs <= 0) return null;
  return html`Maintenance ends in ${roughly(leftMs)}, at ${moment(data.until)}; <a href="#cache">change it</a>.`;
}

const THEMES = ['system', 'light', 'dark'];

/** As the system has it, light, dark; the choice is kept in the browser. */
function ThemeSwitch() {
  const [theme, setTheme] = useState(document.documentElement.dataset['theme'] ?? 'system');
  const choose = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
    if (next === 'system') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = next;
    localStorage.setItem('evalgate.theme', next);
    setTheme(next);
  };
  return button(`Theme: ${theme}`, choose);
}

const root = document.getElementById('app');
if (root !== null) render(html`<${App} />`, root);
startPolling();
