/** An explanation of the admin listener, as text for people. */
import { z } from 'zod';
import { columns, printable } from '../table.ts';
import { bytesText, shortDuration } from './view.ts';

const entrySchema = z.looseObject({
  state: z.string(),
  answer: z.enum(['found', 'absent']),
  visible: z.boolean().nullable(),
  ageMs: z.number(),
  freshUntil: z.string().nullable(),
  staleUntil: z.string().nullable(),
  errorUntil: z.string().nullable(),
  jitterMs: z.number(),
  softPurged: z.boolean(),
  tags: z.array(z.string()),
  bytes: z.number(),
});

const timesSchema = z.looseObject({
  fresh: z.string(),
  stale: z.string(),
  error: z.string(),
  source: z.looseObject({ fresh: z.string(), stale: z.string(), error: z.string() }),
  setBy: z.string().nullable(),
});

export const explanationSchema = z.looseObject({
  path: z.string(),
  route: z.string(),
  key: z.string(),
  class: z.string(),
  workspaces: z.array(z.string()).nullable(),
  next: z.looseObject({ text: z.string() }),
  memory: entrySchema.nullable(),
  redis: z.looseObject({ state: z.string(), entry: entrySchema.nullable() }),
  flight: z.looseObject({ since: z.string().nullable(), leaseLeftMs: z.number().nullable(), justFailed: z.boolean() }),
  lastMiss: z.looseObject({ reason: z.string(), at: z.string() }).nullable(),
  times: timesSchema,
  maintenance: z.looseObject({ until: z.string(), by: z.string() }).nullable(),
});

type Explanation = z.output<typeof explanationSchema>;
type Entry = z.output<typeof entrySchema>;

export function explanationText(explanation: Explanation): string {
  const { memory, redis } = explanation;
  const facts = columns([
    ['Path', explanation.path],
    ['Route', explanation.route],
    ['Key', explanation.key],
    ['Times', timesText(explanation)],
    ['Last miss here', missText(explanation)],
    ['Under way', flightText(explanation)],
    ...maintenanceRows(explanation),
  ]);
  const copies = columns([
    ['TIER', 'STATE', 'ANSWER', 'AGE', 'FRESH UNTIL', 'STALE UNTIL', 'ON ERROR UNTIL', 'BYTES'],
    memory === null ? ['memory', 'nothing held'] : ['memory', ...cells(memory)],
    redis.entry === null ? ['redis', REDIS[redis.state] ?? redis.state] : ['redis', ...cells(redis.entry)],
  ]);
  const entry = memory ?? redis.entry;
  return [printable(explanation.next.text), facts, copies, ...(entry === null ? [] : [aboutEntry(entry)])].join('\n\n');
}

const REDIS: Readonly<Record<string, string>> = {
  alone: 'not used',
  unreachable: 'does not answer',
  unreadable: 'something that is no entry',
  asked: 'nothing held',
};

function timesText({ class: cacheClass, times }: Explanation): string {
  const from = (name: 'fresh' | 'stale' | 'error'): string =>
    times.source[name] === 'default' ? '' : ` (${times.source[name]})`;
  const by = times.setBy === null ? '' : `, set by ${times.setBy}`;
  const each = (['fresh', 'stale', 'error'] as const).map((name) => `${name} ${times[name]}${from(name)}`);
  return `class ${cacheClass}: ${each.join(', ')}${by}`;
}

function missText({ lastMiss }: Explanation): string {
  return lastMiss === null ? 'none that is remembered' : `${lastMiss.reason}, at ${lastMiss.at}`;
}

function flightText({ flight: { since, leaseLeftMs, justFailed } }: Explanation): string {
  if (since !== null) return `a call to the store since ${since}`;
  if (leaseLeftMs !== null) return 'a call to the store by another process';
  return justFailed ? 'nothing; the last call has just failed' : 'nothing';
}

function maintenanceRows({ maintenance }: Explanation): string[][] {
  if (maintenance === null) return [];
  return [['Maintenance', `the store is asked nothing until ${maintenance.until}, said by ${maintenance.by}`]];
}

function cells(entry: Entry): string[] {
  const state = entry.softPurged ? `${entry.state}, softly purged` : entry.state;
  return [
    entry.visible === false ? `${state}, of another workspace` : state,
    entry.answer,
    shortDuration(entry.ageMs),
    entry.freshUntil ?? '-',
    entry.staleUntil ?? '-',
    entry.errorUntil ?? '-',
    bytesText(entry.bytes),
  ];
}

function aboutEntry({ tags, jitterMs, freshUntil, staleUntil }: Entry): string {
  const refreshes = freshUntil === staleUntil ? 'asks the store and waits for it' : 'starts a refresh behind';
  return [
    `The first read after FRESH UNTIL ${refreshes}; jitter makes that ${shortDuration(jitterMs)} earlier.`,
    `Tags: ${printable(tags.join(' '))}`,
  ].join('\n');
}
