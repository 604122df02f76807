/** `evalgate cache explain PATH`: which entry answers a path, and how the next read will be answered. */
import { Argument, type Command } from 'commander';
import type { CopyView, ExplanationView } from '../../operations/answers.ts';
import { UUID_PATTERN } from '../../domain/vocabulary.ts';
import { durationText } from '../../time/duration.ts';
import { adminCommand, callAndPrint } from '../admin-client.ts';
import { matching, parseKeyId, repeated, wrongCall } from '../command.ts';
import { bytesText, type Cell, columns } from '../format.ts';

export function explainCommand(): Command {
  const path = matching(/^\//, 'a path that begins with a slash, plain, such as "/v2/calls?page=2"');
  const workspaces = repeated(matching(UUID_PATTERN, 'a UUID'));
  return adminCommand({
    name: 'explain',
    summary: 'show which cached entry answers a path of the API, and how the next read will be answered',
    details: [
      'The result of /v2/calls depends on the reader: name a key of the registry, or the workspaces of a key.',
      'Memory, calls in flight and the last miss are those of the gateway process that answers.',
    ].join('\n'),
    examples: [
      'evalgate cache explain /v2/calls/ev_MOoXmKaIgRtSSEcIg4/transcript?page=3',
      'evalgate cache explain "/v2/calls?page=2&pageSize=20" --key-id key_1',
      'evalgate cache explain /v2/calls --workspace 2393e09e-a0b1-4849-8887-0fb942eae255 --json',
    ],
  })
    .addArgument(new Argument('<path>', 'the path with its query, as a client of the API sends it').argParser(path))
    .option('--key-id <id>', 'explain what this key of the registry sees', parseKeyId)
    .option('--workspace <uuid...>', 'explain what a key of these workspaces sees; repeat it for more', workspaces)
    .action(async (apiPath: string, options: { keyId?: string; workspace?: readonly string[] }, command: Command) => {
      const { keyId, workspace = [] } = options;
      if (keyId !== undefined && workspace.length > 0) throw wrongCall('Give --key-id or --workspace, not both.');
      const query = new URLSearchParams({ path: apiPath, ...(keyId === undefined ? {} : { keyId }) });
      for (const id of workspace) query.append('workspace', id);
      await callAndPrint(command, (routes) => routes.explain, explanationText, { query });
    });
}

function explanationText(explanation: ExplanationView): string {
  const { path, route, key, owners, memory, redis, lastMiss, maintenance, next } = explanation;
  const facts = [
    ['Path', path],
    ['Route', route],
    ['Key', key],
    ['Copies of', owners.length === 0 ? 'nobody' : owners.join(' ')],
    ['Times', ttlText(explanation)],
    ['Last miss here', lastMiss === null ? 'none remembered' : `${lastMiss.reason}, at ${lastMiss.at}`],
    ['In flight', fetchText(explanation)],
  ];
  if (maintenance !== null) {
    facts.push(['Maintenance', `nothing is sent to the store until ${maintenance.until}, set by ${maintenance.by}`]);
  }
  const copies = columns([
    ['TIER', 'STATE', 'ANSWER', 'AGE', 'FRESH UNTIL', 'STALE UNTIL', 'ON ERROR UNTIL', 'BYTES'],
    ['memory', ...(memory === null ? [NOTHING] : entryCells(memory))],
    ['redis', ...(redis.entry === null ? [REDIS_STATES[redis.state] ?? NOTHING] : entryCells(redis.entry))],
  ]);
  const entry = memory ?? redis.entry;
  return [next.text, columns(facts), copies, ...(entry === null ? [] : [entryNotes(entry)])].join('\n\n');
}

const NOTHING = 'nothing held';
/** Without an entry; the rest holds nothing. */
const REDIS_STATES: Readonly<Record<string, string>> = {
  alone: 'not used',
  unreachable: 'does not answer',
  unreadable: 'a value that is not an entry',
};

function ttlText({ class: cacheClass, times }: ExplanationView): string {
  const each = (['fresh', 'stale', 'error'] as const).map((name) => {
    const source = times.source[name];
    return `${name} ${times[name]}${source === 'default' ? '' : ` (${source})`}`;
  });
  return `class ${cacheClass}: ${each.join(', ')}${times.setBy === null ? '' : `, set by ${times.setBy}`}`;
}

function fetchText({ flight: { since, leaseLeftMs, justFailed } }: ExplanationView): string {
  if (since !== null) return `a call to the store since ${since}`;
  if (leaseLeftMs !== null) return 'a call to the store by another process';
  return justFailed ? 'nothing; the last call has just failed' : 'nothing';
}

function entryCells(entry: CopyView): Cell[] {
  const state =
    entry.changed !== null
      ? `${entry.state} (${entry.changed})`
      : entry.softPurged
        ? `${entry.state}, soft-purged`
        : entry.state;
  return [
    state,
    entry.answer,
    entry.ageMs === null ? 'unknown' : durationText(entry.ageMs),
    entry.freshUntil,
    entry.staleUntil,
    entry.errorUntil,
    bytesText(entry.bytes),
  ];
}

function entryNotes({ tags, jitterMs, freshUntil, staleUntil, owner, answer }: CopyView): string {
  const refreshes = freshUntil === staleUntil ? 'asks the store and waits for it' : 'starts a background refresh';
  return [
    `The first read after FRESH UNTIL ${refreshes}; jitter set FRESH UNTIL ${durationText(jitterMs)} earlier.`,
    `Tags: ${tags.join(' ')}`,
    `Filed under ${owner}${answer === 'absent' ? ', for readers of just these workspaces' : ''}.`,
  ].join('\n');
}
