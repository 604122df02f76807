/** Events of the gateway: changes that people made, their ends, restarts and losses; marks on all charts. */
import { wordsOf } from './audit.js';
import { moment } from './format.js';
import { live } from './live.js';
import { stateText, table, useAllowed } from './ui.js';

/** @typedef {import('./chart.js').Mark} Mark */

/** The actions in the audit that change how requests are answered. */
const SHOWN = /^(?:cache|keys?)\./;

/** @returns {readonly Mark[]} Oldest first. */
export function useEvents() {
  const audit = useAllowed('audit', live.audit)?.entries ?? [];
  const members = useAllowed('fleet', live.fleet)?.members ?? [];
  const changes = useAllowed('health', live.health)?.changes ?? [];
  const made = audit
    .filter(({ action }) => SHOWN.test(action))
    .map(({ at, who, action, target }) => markOf(at, 'made', `${who} ${wordsOf(action)} ${target}`));
  const starts = members.map(({ startedAt, host, pid }) => markOf(startedAt, 'start', `${host} · ${pid} started`));
  const states = changes
    .filter(({ from }) => from !== 'unknown')
    .map(({ at, name, to }) => markOf(at, to === 'degraded' ? 'loss' : 'back', `${name} is ${to}`));
  return [...made, ...starts, ...states].toSorted((a, b) => a.at - b.at);
}

/** @type {(at: string, kind: string, text: string) => Mark} */
function markOf(at, kind, text) {
  return { at: Date.parse(at), kind, text: `${moment(at)} ${text}` };
}

/** @param {{ readonly data: import('./api.js').Answer<'health'> }} props */
export function Changes({ data: { changes } }) {
  const rows = changes.map(({ at, name, to, detail }) => ({
    key: `${at} ${name} ${to}`,
    cells: [name, stateText(to), moment(at), detail],
  }));
  const columns = ['Dependency', 'Became', 'When', 'Cause'];
  return table('State changes', columns, rows, 'No dependency has changed its state.');
}
