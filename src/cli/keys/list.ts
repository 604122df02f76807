/** `evalgate keys list`: all keys. */
import type { Command } from 'commander';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, makeCommand } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { allKeysSchema, keyTable } from './view.ts';

export function listKeysCommand(terminal: Terminal): Command {
  const examples = ['evalgate keys list', "evalgate keys list --json | jq -r '.keys[].keyId'"];
  const command = makeCommand({ name: 'list', summary: 'list all keys, whatever their status', examples }, terminal);
  return withAdminOption(command, terminal).action(async () => {
    const client = adminClientOf(command, terminal);
    const { keys } = await client.call({ method: 'GET', path: '/api/keys', answer: allKeysSchema });
    answer(terminal, command, { document: { keys }, text: keyTable(keys) });
  });
}
