/** What happened to the gateway: changes that people made, their ends, restarts and losses; marks on all charts. */
import { html } from 'htm/preact';
import { wordsOf } from './audit.js';
import { moment } from './format.js';
import { live } from './live.js';
import { Sign, table, useAllowed } from './ui.js';

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
    .map(({ at, who, action, target }) => ({
      at: Date.parse(at),
      kind: 'made',
      text: `${moment(at)} ${who} ${wordsOf(action)} ${target}`,
    }));
  const starts = members.map(({ startedAt, host, pid }) => ({
    at: Date.parse(startedAt),
    kind: 'start',
    text: `${moment(startedAt)} ${host} · ${pid} started`,
  }));
  const states = changes
    .filter(({ from }) => from !== 'unknown')
    .map(({ at, name, to }) => ({
      at: Date.parse(at),
      kind: to === 'degraded' ? 'loss' : 'back',
      text: `${moment(at)} ${name} is ${to}`,
    }));
  return [...made, ...starts, ...states].toSorted((a, b) => a.at - b.at);
}

/** @param {{ readonly data: import('./api.js').Answer<'health'> }} props */
export function Changes({ data: { changes } }) {
  const rows = changes.map(({ at, name, to, detail }) => {
    const kind = to === 'ok' ? 'good' : to === 'degraded' ? 'warn' : 'unknown';
    return { key: `${at} ${name} ${to}`, cells: [name, html`<${Sign} kind=${kind} />${to}`, moment(at), detail] };
  });
  return table(
    'State changes',
    ['Dependency', 'Became', 'When', 'Cause'],
    rows,
    'No dependency has changed its state.',
  );
}
