/** `evalgate cache erase`: deletes all copies of an evaluation or a workspace, and proves it by a receipt. */
import type { Command } from 'commander';
import type { ReceiptView } from '../../operations/answers.ts';
import { ID_PATTERN, UUID_PATTERN } from '../../domain/vocabulary.ts';
import { adminCommand, callAdmin } from '../admin-client.ts';
import { matching, repeated, wrongCall } from '../command.ts';
import { countText } from '../format.ts';
import { write, writeJson } from '../output.ts';

/** Calls to the store that are under way have 20 s to end; then all of Redis is looked through. */
const TIMEOUT_MS = 900_000;

interface EraseOptions {
  readonly evaluation?: string;
  readonly workspace?: string;
  readonly gone?: readonly string[];
}

export function eraseCommand(): Command {
  const processId = matching(ID_PATTERN, 'the id of a process, as the receipt shows it');
  return adminCommand({
    name: 'erase',
    summary: 'delete all copies of an evaluation or a workspace, and prove it',
    details: [
      'Delete the record in the store first: a copy that somebody reads afterwards is fetched again (`refetched`).',
      'Every process answers that it holds nothing, and Redis is looked through to its end. Standard output gets the receipt as JSON, the audit too.',
      'The exit status is 1 unless all was reached and nothing is left. A process that ended without a goodbye counts as not reached until it is back; name one that has ended for good with --gone.',
    ].join('\n'),
    examples: [
      'evalgate cache erase --evaluation ev_MOoXmKaIgRtSSEcIg4',
      'evalgate cache erase --workspace 2393e09e-a0b1-4849-8887-0fb942eae255 > receipt.json',
    ],
  })
    .option('--evaluation <id>', 'the evaluation', matching(ID_PATTERN, 'the id of an evaluation'))
    .option('--workspace <uuid>', 'the workspace', matching(UUID_PATTERN, 'a UUID'))
    .option('--gone <id...>', 'a process that has ended; repeat it for more', repeated(processId))
    .action(async ({ evaluation, workspace, gone = [] }: EraseOptions, command: Command) => {
      if ((evaluation === undefined) === (workspace === undefined)) {
        throw wrongCall('Nothing was erased. Give one of --evaluation and --workspace.');
      }
      const body = evaluation === undefined ? { workspace, gone } : { evaluation, gone };
      const receipt = await callAdmin(command, (routes) => routes.erase, { body, timeoutMs: TIMEOUT_MS });
      writeJson(receipt, 2);
      for (const id of receipt.unknownGone) write('stderr', `No process is known by ${id}: --gone changed nothing.\n`);
      if (receipt.erased) return;
      for (const line of remedies(receipt)) write('stderr', `${line}\n`);
      process.exitCode = 1;
    });
}

function remedies({ refetched, redis, processes }: ReceiptView): readonly string[] {
  const missed = processes.filter(({ reached }) => !reached).map(({ id }) => id);
  return [
    ...(refetched
      ? ['The store still has it, and somebody has read it again: delete it there, then repeat this.']
      : []),
    ...(redis.complete
      ? []
      : [
          `The cache Redis could not be looked through (${redis.problem ?? 'it did not answer in time'}): repeat this when it can.`,
        ]),
    ...(missed.length === 0
      ? []
      : [
          `${countText(missed.length, 'process', 'processes')} did not answer in time or still held something: ${missed.join(', ')}. Repeat this; name those that have ended with --gone.`,
        ]),
  ];
}
