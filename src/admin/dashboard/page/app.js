/** The page: who is signed in, and the three views below the headline. */
import { html } from 'htm/preact';
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { hasToken, session, signIn, signOut } from './api.js';
import { CacheView } from './cache.js';
import { Headline } from './headline.js';
import { HealthView } from './health.js';
import { KeysView } from './keys.js';
import { live, refreshAll, startPolling } from './live.js';
import { useStore } from './store.js';
import { button, Form, TextField, useMay } from './ui.js';

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
      <${Headline} />
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
  const { data } = useStore(live.who);
  const who = data !== null && (hasToken() ? `Signed in as ${data.who} (${data.role})` : 'Not signed in');
  return html`<header class="top">
    <h1>evalgate</h1>
    <nav aria-label="Views">
      ${views.map(
        ([id, name]) => html`<a href="#${id}" aria-current=${id === current ? 'page' : undefined}>${name}</a>`,
      )}
    </nav>
    <div class="tools">
      ${isOpen && html`<span>${who}</span>`}
      <${ThemeSwitch} />
      ${isOpen && hasToken() && button('Sign out', signOut)}
    </div>
  </header>`;
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
