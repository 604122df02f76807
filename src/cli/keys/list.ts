/** `evalgate keys list`: all keys. */
import type { Command } from 'commander';
import { answer, makeCommand } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { atKeyOffice, withOfficeOption } from './at-office.ts';
import { keyTable } from './view.ts';

export function listKeysCommand(terminal: Terminal): Command {
  const examples = ['evalgate keys list', "evalgate keys list --json | jq -r '.keys[].keyId'"];
  const command = makeCommand({ name: 'list', summary: 'list all keys, whatever their status', examples }, terminal);
  return withOfficeOption(command, terminal).action(async () => {
    const keys = await atKeyOffice(command, terminal, (office) => office.list());
    answer(terminal, command, { document: { keys }, text: keyTable(keys) });
  });
}
