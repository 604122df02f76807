/** The dashboard: what it asks of the gateway, and its sections in the order in which somebody woken at night needs them. */
import { Api } from './api.js';
import { auditPanel } from './audit.js';
import { fill, h } from './dom.js';
import { explainPanel } from './explain.js';
import { fleetPanel } from './fleet.js';
import { hourPanel } from './hour.js';
import { keysPanel } from './keys.js';
import { maintenancePanel } from './maintenance.js';
import { missesPanel } from './misses.js';
import { nowPanel } from './now.js';
import { purgePanel } from './purge.js';
import { poll, Resource } from './resource.js';
import {
  readAdvice,
  readAudit,
  readFleet,
  readHistory,
  readKeys,
  readMaintenance,
  readPulse,
  readReadiness,
  readStats,
  readTimes,
  readTop,
} from './shapes.js';
import { askForToken } from './sign-in.js';
import { liveness, maintenanceBanner, statusBar } from './status.js';
import { themeSwitch } from './theme.js';
import { timesPanel } from './times.js';
import { topPanel } from './top.js';
import { whatIfPanel } from './what-if.js';

const OFTEN_MS = 2000;
/** Of what changes by hand, or moves slowly. It is asked for at once after each change made here. */
const SELDOM_MS = 10_000;

const api = new Api((reason) => void signIn(reason));
const resources = {
  readiness: new Resource(api, { path: 'readyz', read: readReadiness, everyMs: OFTEN_MS }),
  maintenance: new Resource(api, { path: 'api/cache/maintenance', read: readMaintenance, everyMs: OFTEN_MS }),
  history: new Resource(api, { path: 'api/cache/history', read: readHistory, everyMs: OFTEN_MS }),
  pulse: new Resource(api, { path: 'api/cache/pulse', read: readPulse, everyMs: OFTEN_MS }),
  advice: new Resource(api, { path: 'api/cache/advice', read: readAdvice, everyMs: OFTEN_MS }),
  stats: new Resource(api, { path: 'api/cache', read: readStats, everyMs: SELDOM_MS }),
  times: new Resource(api, { path: 'api/cache/ttl', read: readTimes, everyMs: SELDOM_MS }),
  top: new Resource(api, { path: 'api/cache/top?limit=10', read: readTop, everyMs: SELDOM_MS }),
  fleet: new Resource(api, { path: 'api/fleet', read: readFleet, everyMs: OFTEN_MS }),
  keys: new Resource(api, { path: 'api/keys?limit=1000', read: readKeys, everyMs: SELDOM_MS }),
  audit: new Resource(api, { path: 'api/audit', read: readAudit, everyMs: SELDOM_MS }),
};
const all = Object.values(resources);

/** After a change: what it may have moved is asked for again before the change counts as done. */
const changed = async () => {
  const { times, advice, maintenance, keys, audit, stats } = resources;
  await Promise.all([times, advice, maintenance, keys, audit, stats].map((resource) => resource.refresh()));
};
const means = { api, changed };

const signOut = h('button', { type: 'button', class: 'quiet', hidden: true }, 'Sign out');
signOut.addEventListener('click', () => {
  api.signOut();
  // Nothing that was read with the token stays behind.
  location.reload();
});

let isAsking = false;

/** @param {string} reason */
async function signIn(reason) {
  if (isAsking) return;
  isAsking = true;
  const token = await askForToken(reason);
  isAsking = false;
  api.signIn(token);
  signOut.hidden = false;
  await Promise.all(all.map((resource) => resource.refresh()));
}

const { readiness, fleet, maintenance, history, pulse, advice, times, stats, top, keys, audit } = resources;
signOut.hidden = !api.hasToken;
fill(document.getElementById('tools') ?? document.body, liveness(all), themeSwitch(), signOut);
fill(
  document.getElementById('state') ?? document.body,
  maintenanceBanner(maintenance),
  statusBar({ readiness, fleet }),
);
fill(
  document.getElementById('sections') ?? document.body,
  nowPanel({ history, pulse }),
  hourPanel(history),
  whatIfPanel(means, { advice, times }),
  timesPanel(means, times),
  missesPanel(stats),
  topPanel(top),
  maintenancePanel(means, maintenance),
  purgePanel(means),
  explainPanel(api, keys),
  keysPanel(means, keys),
  auditPanel(audit),
  fleetPanel(fleet),
);
poll(all, api);
