import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MetricDescription } from '../../../src/admin/metrics/describe.ts';
import { createMetrics } from '../../../src/admin/metrics/metrics.ts';

const page = fileURLToPath(new URL('../../../docs/metrics.md', import.meta.url));
const metrics = createMetrics({ version: '1.2.3' });
afterAll(() => metrics.close());

let own: readonly MetricDescription[];
let all: ReadonlyMap<string, MetricDescription>;
let text: string;
beforeAll(async () => {
  const described = await metrics.describe();
  own = described.filter(({ name }) => name.startsWith('evalgate_'));
  // Made where the metrics of workers are put together.
  const workers = { name: 'evalgate_workers', type: 'gauge', labels: ['state'], help: '' };
  all = new Map([...described, workers].map((metric) => [metric.name, metric]));
  text = await readFile(page, 'utf8');
});

function table(): string {
  const rows = own.map(({ name, type, labels, help }) => {
    const named = labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${named} | ${help} |`;
  });
  return ['| name | kind | labels | what it is |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

test('docs/metrics.md lists every metric as it is registered', async () => {
  const [before, after] = text.split(/(?<=<!-- metrics:.*-->\n)[^]*(?=<!-- end of metrics -->)/);
  await expect(`${before}\n${table()}\n\n${after}`).toMatchFileSnapshot(page);
});

test('names tell the kind and the unit, as Prometheus would have them', () => {
  const namesOf = (kind: string): string[] => own.filter(({ type }) => type === kind).map(({ name }) => name);
  expect(namesOf('counter').filter((name) => !name.endsWith('_total'))).toEqual([]);
  expect([...namesOf('gauge'), ...namesOf('histogram')].filter((name) => name.endsWith('_total'))).toEqual([]);
  expect(namesOf('histogram').filter((name) => !/_(?:seconds|bytes)$/.test(name))).toEqual([]);
  expect(own.filter(({ name }) => /_(?:ms|millis|kb|mb|percent)(?:_|$)/.test(name))).toEqual([]);
  expect(own.filter(({ help }) => !/^[A-Z0-9].*\.$/.test(help))).toEqual([]);
});

/** A selector: a name, and the labels that it is narrowed by. */
const SELECTOR = /\b((?:evalgate|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g;

function known(name: string): MetricDescription | undefined {
  return all.get(name) ?? all.get(name.replace(/_(?:bucket|sum|count)$/, ''));
}

test('every metric and label in its queries is there', () => {
  const selectors = [...text.matchAll(SELECTOR)];
  expect(selectors.length).toBeGreaterThan(50);
  const unknown = selectors.filter(([, name = '', narrowed = '']) => {
    const labels = [...narrowed.matchAll(/([a-z]+)\s*(?:=~|!=|=)/g)].map(([, label = '']) => label);
    return !hasAll(known(name), labels);
  });
  expect(unknown.map(([selector]) => selector)).toEqual([]);
});

test('every query that groups by a label groups what has it', () => {
  const grouped = [...text.matchAll(/by \(([a-z, ]+)\) \(\w*\(?((?:evalgate)_[a-z0-9_]+)/g)];
  expect(grouped.length).toBeGreaterThan(15);
  const wrong = grouped.filter(([, labels = '', name = '']) => {
    const wanted = labels.split(', ').filter((label) => label !== 'le');
    return !hasAll(known(name), wanted);
  });
  expect(wrong.map(([query]) => query)).toEqual([]);
});

function hasAll(metric: MetricDescription | undefined, labels: readonly string[]): boolean {
  return metric !== undefined && labels.every((label) => metric.labels.includes(label));
}
