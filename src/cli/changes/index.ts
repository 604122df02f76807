/** `evalgate changes`: the changes of the store, as they come. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { AnswerOf, ROUTES } from '../../operations/api.ts';
import { adminCommand, callAdmin } from '../admin-client.ts';
import { makeGroup } from '../command.ts';
import { write, writeJson } from '../output.ts';
import { SUMMARIES } from '../summaries.ts';

const LOOK_EVERY_MS = 500;
const AT_ONCE = 1000;

type Changes = AnswerOf<typeof ROUTES.listChanges>;

export function changesCommand(): Command {
  return makeGroup({
    name: 'changes',
    summary: SUMMARIES.changes,
    details: 'The commands act on a running gateway through its admin listener.',
    examples: ['evalgate changes tail', 'evalgate changes tail --json'],
  }).addCommand(tailCommand());
}

function tailCommand(): Command {
  return adminCommand({
    name: 'tail',
    summary: 'print each change when it is announced, or found in an answer of the store',
    details:
      'A line has the time, whether the change was announced or found, the record, its workspace, and what has changed. It goes on until you end it, so with --json it prints one line of JSON per change, in place of one document.',
    examples: ['evalgate changes tail', "evalgate changes tail --json | jq 'select(.deleted)'"],
  }).action(async ({ json = false }: { json?: boolean }, command: Command) => {
    const ended = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ended.abort());
    let { cursor } = await callAdmin(command, (routes) => routes.listChanges);
    write('stderr', 'Waiting for changes.\n');
    while (!ended.signal.aborted) {
      const query = new URLSearchParams({ after: cursor, limit: String(AT_ONCE) });
      const page = await callAdmin(command, (routes) => routes.listChanges, { query });
      if (page.missing) write('stderr', 'Some changes are missing: they are no longer known to this gateway.\n');
      for (const change of page.changes) {
        if (json) writeJson(change);
        else write('stdout', `${lineOf(change)}\n`);
      }
      ({ cursor } = page);
      if (!page.hasMore) await sleep(LOOK_EVERY_MS, null, { signal: ended.signal }).catch(() => undefined);
    }
  });
}

function lineOf({
  at,
  announced,
  record,
  workspace,
  kinds,
  created,
  deleted,
  previousWorkspace,
}: Changes['changes'][number]): string {
  const moved = previousWorkspace === null ? [] : [`moved from ${previousWorkspace}`];
  const what = deleted ? ['deleted'] : [...(created ? ['created'] : []), ...moved, kinds.join(', ')];
  return [at, announced ? 'announced' : 'found', record, workspace, what.join(': ')].join('  ');
}
