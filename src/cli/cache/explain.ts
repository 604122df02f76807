/** `evalgate cache explain PATH`: which entry answers a path, and what its next read would do. */
import { Argument, type Command } from 'commander';
import type { CopyView, ExplanationView } from '../../admin/answers.ts';
import { ROUTES, UNKNOWN_KEY, VIEWER_NEEDED } from '../../admin/api.ts';
import { UUID_PATTERN } from '../../domain/records.ts';
import { adminCommand, callAndPrint } from '../admin-client.ts';
import { CliError, matching, parseKeyId, repeated, wrongCall } from '../command.ts';
import { bytesText, columns, durationText, printable } from '../format.ts';

export function explainCommand(): Command {
  const command = adminCommand({
    name: 'explain',
    summary: 'show which cached entry answers a path of the API, and what the next read of it would do',
    details: [
      'The result of /v2/calls depends on the reader: name a key of the registry, or the workspaces of a key.',
      'Memory, calls under way and the last miss are those of one gateway process.',
    ].join('\n'),
    examples: [
      'evalgate cache explain /v2/calls/ev_MOoXmKaIgRtSSEcIg4/transcript?page=3',
      'evalgate cache explain "/v2/calls?page=2&pageSize=20" --key-id key_1',
      'evalgate cache explain /v2/calls --workspace 2393e09e-a0b1-4849-8887-0fb942eae255 --json',
    ],
  });
  const pathArgument = new Argument('<path>', 'the path with its query, as a client of the API sends it').argParser(
    matching(/^\//, 'a path that begins with a slash, plain, such as "/v2/calls?page=2"'),
  );
  return command
    .addArgument(pathArgument)
    .option('--key-id <id>', 'explain what this key of the registry sees', parseKeyId)
    .option(
      '--workspace <uuid...>',
      'explain what a key of these workspaces sees; repeat it for more',
      repeated(matching(UUID_PATTERN, 'a UUID')),
    )
    .action(async (apiPath: string) => {
      const { keyId, workspace = [] } = command.opts<{ keyId?: string; workspace?: readonly string[] }>();
      if (keyId !== undefined && workspace.length > 0) {
        throw wrongCall('Give --key-id or --workspace, not both.');
      }
      const query = new URLSearchParams({ path: apiPath });
      if (keyId !== undefined) query.append('keyId', keyId);
      for (const id of workspace) query.append('workspace', id);
      await callAndPrint(command, ROUTES.explain, explanationText, { query }).catch((error: unknown) => {
        throw withOptionNames(error);
      });
    });
}

/** The listener's refusals name its query parameters; the command line has options. */
function withOptionNames(error: unknown): unknown {
  if (!(error instanceof CliError)) return error;
  if (error.message.startsWith(VIEWER_NEEDED)) {
    return new CliError(
      `${VIEWER_NEEDED} Name a key of the registry with --key-id ID, or workspaces with --workspace UUID (repeat it for more).`,
    );
  }
  if (error.message.startsWith(UNKNOWN_KEY)) {
    return new CliError(
      'The registry has no key with the id of --key-id. `evalgate keys list` shows those that it has; for another key name its workspaces with --workspace UUID instead.',
    );
  }
  return error;
}

function explanationText(explanation: ExplanationView): string {
  const { path, route, key, memory, redis, lastMiss, maintenance, next } = explanation;
  const facts = [
    ['Path', path],
    ['Route', route],
    ['Key', key],
    ['Times', ttlText(explanation)],
    ['Last miss here', lastMiss === null ? 'none that is remembered' : `${lastMiss.reason}, at ${lastMiss.at}`],
    ['Under way', fetchText(explanation)],
  ];
  if (maintenance !== null) {
    facts.push(['Maintenance', `the store is asked nothing until ${maintenance.until}, set by ${maintenance.by}`]);
  }
  const copies = columns([
    ['TIER', 'STATE', 'ANSWER', 'AGE', 'FRESH UNTIL', 'STALE UNTIL', 'ON ERROR UNTIL', 'BYTES'],
    ['memory', ...(memory === null ? ['nothing held'] : entryCells(memory))],
    ['redis', ...(redis.entry === null ? [REDIS_STATES[redis.state] ?? redis.state] : entryCells(redis.entry))],
  ]);
  const entry = memory ?? redis.entry;
  return [printable(next.text), columns(facts), copies, ...(entry === null ? [] : [entryNotes(entry)])].join('\n\n');
}

const REDIS_STATES: Readonly<Record<string, string>> = {
  alone: 'not used',
  unreachable: 'does not answer',
  unreadable: 'something that is no entry',
  asked: 'nothing held',
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

function entryCells(entry: CopyView): string[] {
  const state = entry.softPurged ? `${entry.state}, softly purged` : entry.state;
  return [
    entry.visible === false ? `${state}, of another workspace` : state,
    entry.answer,
    durationText(entry.ageMs),
    entry.freshUntil ?? '-',
    entry.staleUntil ?? '-',
    entry.errorUntil ?? '-',
    bytesText(entry.bytes),
  ];
}

function entryNotes({ tags, jitterMs, freshUntil, staleUntil }: CopyView): string {
  const refreshes = freshUntil === staleUntil ? 'asks the store and waits for it' : 'starts a refresh behind';
  return [
    `The first read after FRESH UNTIL ${refreshes}; jitter makes that ${durationText(jitterMs)} earlier.`,
    `Tags: ${printable(tags.join(' '))}`,
  ].join('\n');
}
