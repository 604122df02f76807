/** `evalgate keys rotate`: issues a successor. */
import { type Command, Option } from 'commander';
import { answer, durationBetween, makeCommand } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { atKeyOffice, withOfficeOption } from './at-office.ts';
import { withKeyId } from './one-key.ts';
import { issuedKeyDocument, issuedKeyText } from './view.ts';

const DAY_MS = 86_400_000;

export function rotateKeyCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'rotate',
      summary: 'issue a successor of a key and print it, once',
      details: 'It has the same rights and shares the quota. The old key ends after the overlap.',
      examples: ['evalgate keys rotate k_7Hq2', 'evalgate keys rotate k_7Hq2 --overlap 7d --json'],
    },
    terminal,
  );
  return withOfficeOption(withKeyId(command), terminal)
    .addOption(
      new Option('--overlap <duration>', 'how long both keys are good')
        .argParser(durationBetween(0, 365 * DAY_MS))
        .default(DAY_MS, '24h'),
    )
    .action(async (id: string) => {
      const { overlap } = command.opts<{ overlap: number }>();
      const { key, token } = await atKeyOffice(command, terminal, (office) => office.rotate(id, overlap));
      answer(terminal, command, { document: issuedKeyDocument(key, token), text: issuedKeyText(key, token) });
    });
}
