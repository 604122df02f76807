/** Maintenance: while it lasts the store is not called; it ends by itself. */
import { html } from 'htm/preact';
import { moment, roughly, written } from './format.js';
import { change } from './live.js';
import { durationOf } from './ttl.js';
import { Ask, Form, Sign, useDialog, useMay, useTexts } from './ui.js';

/** @param {{ readonly data: import('./api.js').Answer<'showMaintenance'> }} props */
export function Maintenance({ data: { active, until, by } }) {
  const mayChange = useMay()('beginMaintenance');
  const { typed, field } = useTexts({ length: '30m' });
  const { dialog, open } = useDialog();
  const leftMs = until === null ? 0 : Date.parse(until) - Date.now();
  const isOn = active && leftMs > 0;
  const ask = async () => {
    const length = written(durationOf(typed.length, 'length'));
    open((close) => html`<${Begin} isOn=${isOn} length=${length} close=${close} />`);
  };
  const state = isOn
    ? `On: ${roughly(leftMs)} left, until ${moment(until ?? '')}. Set by ${by ?? 'unknown'}.`
    : 'Off: the store is called as usual.';
  const shown = html`<p><${Sign} kind=${isOn ? 'warn' : 'good'} />${state}</p>`;
  if (!mayChange) return shown;
  return html`${shown} ${isOn && html`<${Form} submit="End now" kind="primary" run=${end} />`}
    <${Form} submit=${isOn ? 'Move the end …' : 'Begin …'} run=${ask}
      >${field('length', isOn ? 'End in' : 'For', 'at most 24h')}<//
    >
    ${dialog}`;
}

/** @param {{ readonly isOn: boolean, readonly length: string, readonly close: () => void }} props */
function Begin({ isOn, length, close }) {
  const title = isOn ? `End maintenance in ${length}?` : `Stop calling the store for ${length}?`;
  const submit = isOn ? 'Move the end' : 'Begin';
  const run = () => change('beginMaintenance', { body: { for: length } }, `Maintenance for ${length}.`);
  return html`<${Ask} title=${title} submit=${submit} kind="danger" run=${run} close=${close}>
    <p>
      Copies are served while they are usable on error; a read without one fails with 500 and Retry-After. In force in
      every process; it ends by itself.
    </p>
  <//>`;
}

function end() {
  return change('endMaintenance', {}, 'Maintenance has ended.');
}
