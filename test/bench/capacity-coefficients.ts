/**
 * What the plan of capacity rests on: each a measured figure with a name and a unit, as the table of coefficients prints
 * it. The plan is worked out from the printed figures, so that whoever reads the table can work it out again.
 */
import { z } from 'zod';
import type { Table } from './gateway/case.ts';

/** In the order of the table. */
const COEFFICIENTS = [
  ['gatewayRequest', 'gateway: a request answered from memory', 'µs of CPU'],
  ['gatewayCall', 'gateway: a call for rate limits, with its turn of the event loop, beyond that', 'µs of CPU'],
  ['gatewayHit', 'gateway: a read from Redis, beyond that', 'µs of CPU'],
  ['gatewayFill', 'gateway: a call to the store, with what it seeds, beyond that', 'µs of CPU'],
  ['gatewayIdle', 'gateway: a process to which nobody talks', 'µs of CPU a second'],
  ['gatewayHear', 'gateway: to hear of another process’s fill', 'µs of CPU'],
  ['gatewayMember', 'gateway: to read what one other process tells, at a heartbeat', 'µs of CPU'],
  ['memoryAnswer', 'gateway: an answer in the memory tier', 'bytes'],
  ['quotaCall', 'state Redis: a call for rate limits', 'µs of CPU'],
  ['quotaKey', 'state Redis: each key in such a call, with 2,400 requests in its hour', 'µs of CPU'],
  ['keysOfCall', 'requests in such a call, 2,000 requests/s a process', 'requests'],
  ['keysOfBusyCall', 'the same, 6,000 requests/s a process', 'requests'],
  ['keysOfClusterCall', 'the same, the state in a Cluster', 'requests'],
  ['keyLookup', 'state Redis: a key looked up', 'µs of CPU'],
  ['keyUse', 'state Redis: a key’s last use noted', 'µs of CPU'],
  ['stateIdle', 'state Redis: a process, whatever it is asked', 'µs of CPU a second'],
  ['publish', 'Redis: a message', 'µs of CPU'],
  ['deliver', 'Redis: each who hears it', 'µs of CPU'],
  ['busNode', 'Cluster: a message, at each other node', 'µs of CPU'],
  ['busBytes', 'Cluster: a message, to each other node', 'bytes'],
  ['beat', 'state Redis: a heartbeat', 'µs of CPU'],
  ['beatMember', 'state Redis: each member at a heartbeat', 'µs of CPU'],
  ['beatBytes', 'state Redis: each member at a heartbeat', 'bytes'],
  ['stateInBytes', 'to the state Redis, a request', 'bytes'],
  ['stateOutBytes', 'from the state Redis, a request', 'bytes'],
  ['appendedBytes', 'state Redis: written to disk, a request', 'bytes'],
  ['logEntryBytes', 'state Redis: a request within the last hour', 'bytes'],
  ['logBytes', 'state Redis: the log of a key in use, beside that', 'bytes'],
  ['keyBytes', 'state Redis: an issued key', 'bytes'],
  ['cacheHit', 'cache Redis: a read', 'µs of CPU'],
  ['cacheFill', 'cache Redis: a fill, with what it seeds', 'µs of CPU'],
  ['cacheIdle', 'cache Redis: a process, whatever it is asked', 'µs of CPU a second'],
  ['cacheHitBytes', 'from the cache Redis, a read', 'bytes'],
  ['cacheFillBytes', 'to the cache Redis, a fill', 'bytes'],
  ['cacheEntryBytes', 'cache Redis: an answer', 'bytes'],
  ['answerBytes', 'to consumers, an answer of the mix, with its header', 'bytes'],
  ['requestBytes', 'from consumers, a request', 'bytes'],
  ['logLineBytes', 'access log, a request', 'bytes'],
  ['samples', 'a scrape of a process under this load', 'samples'],
] as const;

const coefficientsSchema = z.record(z.enum(COEFFICIENTS.map(([name]) => name)), z.number());
export type Coefficients = Readonly<z.output<typeof coefficientsSchema>>;

export const COEFFICIENTS_TITLE = '**Coefficients**';

export function coefficientsTable(coefficients: Coefficients): Table {
  return {
    title: COEFFICIENTS_TITLE,
    head: ['name', 'what', 'measured', 'unit'],
    lines: COEFFICIENTS.map(([name, what, unit]) => [`\`${name}\``, what, figures(coefficients[name]), unit]),
  };
}

/** As the table shows them: what is not in three figures is no longer known. Nothing that was measured is below zero. */
export function asPrinted(coefficients: Coefficients): Coefficients {
  return mapped((name) => numberOf(figures(Math.max(0, coefficients[name]))));
}

/** Out of Markdown that holds the table. Throws where one is missing. */
export function readCoefficients(markdown: string): Coefficients {
  return mapped((name) => {
    const cell = new RegExp(`^\\| \`${name}\` +\\|[^|]*\\| *([\\d,.]+) *\\|`, 'm').exec(markdown)?.[1];
    if (cell === undefined) throw new Error(`there is no figure for ${name}`);
    return numberOf(cell);
  });
}

/** Three significant figures, thousands parted. */
export function figures(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: 3 });
}

function numberOf(cell: string): number {
  return Number(cell.replaceAll(',', ''));
}

function mapped(valueOf: (name: keyof Coefficients) => number): Coefficients {
  return coefficientsSchema.parse(Object.fromEntries(COEFFICIENTS.map(([name]) => [name, valueOf(name)])));
}
