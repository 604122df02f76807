/** The headline: how the gateway is doing in a word, and of each trouble cause, time, impact, deadline and runbook. */
import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import { moment, roughly } from './format.js';
import { RUNBOOK } from './declared.js';
import { announce, live, refreshAll } from './live.js';
import { useStore } from './store.js';
import { Sign, useAllowed } from './ui.js';

/** @typedef {import('./api.js').Answer<'readyz'>} Readiness */
/** @typedef {import('./api.js').Answer<'health'>['troubles'][number]} More */
/** @typedef {Readiness['dependencies'][number] & Pick<More, 'severity' | 'deadline'>} Dependency */

/** @type {Pick<More, 'severity' | 'deadline'>} */
const UNKNOWN = { severity: 'warning', deadline: null };
/** Listed by readiness as a dependency, but it is somebody's will and no trouble. */
const MAINTENANCE = 'maintenance';

/**
 * The impact of each trouble on consumers, and the section of the runbook about it.
 * @type {Readonly<Record<string, readonly [impact: string, section: string]>>}
 */
const TROUBLES = {
  answers: ['Consumers are refused, fail or wait longer than before.', 'evalgateconsumersrefused'],
  store: ['Copies are served, and become older; reads without a copy fail.', 'evalgatestoredown'],
  capacity: ['Some requests get 500 with Retry-After, or lose their connection.', 'evalgaterequestsshed'],
  maintenance: ['The store is not called; only copies are served.', 'evalgatemaintenanceon'],
  'redis-state': ['Limits are per process; keys, times and purges cannot be changed.', 'evalgateredisstatedown'],
  'redis-cache': ['New answers are not shared: the store is called more often.', 'evalgaterediscachedown'],
  quota: ['Each process enforces its share of the limits.', 'evalgatequotanotexact'],
  keys: ['Keys may be refused, or changes of keys missed.', 'evalgatekeysunchecked'],
  clock: ['Copies may be renewed too early, and keys end at the wrong time.', 'evalgateclockwrong'],
  config: ['None yet: the old configuration is in force, and the next start fails.', 'evalgateconfigreloadfailed'],
  secrets: ['None yet: the old value is in force.', 'evalgatesecretnotread'],
  workers: ['The other workers serve more requests each.', 'evalgateworkermissing'],
};

/** If all keys are lost, the section about keys that cannot be checked does not help. */
const LOST_KEYS = /** @type {const} */ (['Every consumer gets 401 until the keys are imported.', 'evalgatekeyslost']);

/**
 * The state of the gateway, in a word and a sentence. Red: most consumers get no answers, or soon will not.
 * @param {import('./live.js').Answer<Readiness>} readiness
 * @param {readonly Dependency[]} degraded
 * @returns {readonly [kind: import('./ui.js').Kind, word: string, sentence: string]}
 */
function overall({ data, atMs, error }, degraded) {
  const asOf = data === null ? '' : ` What is shown is from ${moment(atMs)}.`;
  if (error !== null) return ['bad', 'No answer', `${error}${asOf}`];
  if (data === null) return ['unknown', 'Loading …', ''];
  if (data.status === 'starting') return ['bad', 'Starting', 'This process serves no requests yet.'];
  if (data.status === 'draining') {
    return ['bad', 'Draining', 'This process is shutting down; send requests elsewhere.'];
  }
  const troubled = degraded.filter(({ name }) => name !== MAINTENANCE).map(({ name }) => name);
  if (degraded.some(({ severity }) => severity === 'critical')) {
    return ['bad', 'Failing', `Most requests fail. In trouble: ${troubled.join(', ')}.`];
  }
  if (troubled.length > 0) return ['warn', 'Degraded', `Some requests may fail. In trouble: ${troubled.join(', ')}.`];
  if (degraded.length > 0) return ['warn', 'Maintenance', 'The store is not called; only copies are served.'];
  return ['good', 'Ready', 'Requests are served, and nothing is known to be in trouble.'];
}

/**
 * Those that are degraded, the worst first.
 * @param {Readiness | null} readiness
 * @param {readonly More[]} more
 * @returns {readonly Dependency[]}
 */
function troublesOf(readiness, more) {
  const degraded = (readiness?.dependencies ?? []).filter(({ status }) => status === 'degraded');
  return degraded
    .map((one) => ({ ...UNKNOWN, ...more.find(({ name }) => name === one.name), ...one }))
    .toSorted((a, b) => Number(b.severity === 'critical') - Number(a.severity === 'critical'));
}

export function Headline() {
  const readiness = useStore(live.readiness);
  const { data, error } = readiness;
  const degraded = troublesOf(data, useAllowed('health', live.health)?.troubles ?? []);
  const [kind, word, sentence] = overall(readiness, degraded);
  useEffect(() => {
    document.title = kind === 'good' ? 'evalgate' : `${word} · evalgate`;
    announce(`${word}. ${sentence}`);
    // The gateway is back, or has changed: everything on the screen is fetched at once.
    if (error === null) void refreshAll();
  }, [kind, word]);
  const troubles = error === null ? degraded : [];
  return html`<div class="status status-${kind}">
    <p><${Sign} kind=${kind} /><strong>${word}</strong> ${sentence}</p>
    ${
      troubles.length > 0 &&
      html`<ul>
        ${troubles.map((one) => html`<${Trouble} key=${one.name} of=${one} />`)}
      </ul>`
    }
  </div>`;
}

/** @param {{ readonly of: Dependency }} props */
function Trouble({ of: { name, since, detail, severity, deadline } }) {
  const areKeysLost = name === 'keys' && detail.startsWith('Redis lost its data');
  const [impact, section] = areKeysLost ? LOST_KEYS : (TROUBLES[name] ?? ['', '']);
  const leftMs = deadline === null ? 0 : Date.parse(deadline) - Date.now();
  const when = deadline === null || leftMs <= 0 ? 'now' : `in ${roughly(leftMs)}, at ${moment(deadline)}`;
  const end = `${name === MAINTENANCE ? 'Maintenance ends' : 'It becomes worse'} ${when}`;
  const change = name === MAINTENANCE && html`; <a href="#cache">change it</a>`;
  return html`<li>
    <${Sign} kind=${severity === 'critical' ? 'bad' : 'warn'} /><strong>${name}</strong> since
    ${` ${moment(since)} (${roughly(Math.max(0, Date.now() - Date.parse(since)))}): ${detail}. `}
    <span class="impact">${impact}</span>
    ${deadline !== null && html` <strong>${end}</strong>${change}.`} ${' '}<a
      href="${RUNBOOK}${section === '' ? '' : `#${section}`}"
      rel="noreferrer"
      >Runbook: ${name}</a
    >
  </li>`;
}
