/** `evalgate keys`: the registry of API keys. */
import type { Command } from 'commander';
import { makeGroup } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { createKeyCommand } from './create.ts';
import { importKeysCommand } from './import.ts';
import { listKeysCommand } from './list.ts';
import { deprecateKeyCommand, revokeKeyCommand, showKeyCommand } from './one-key.ts';
import { rotateKeyCommand } from './rotate.ts';

export function keysCommand(terminal: Terminal): Command {
  const texts = {
    name: 'keys',
    summary: 'create, list and end API keys',
    details:
      'With REDIS_URL the commands act on Redis directly: no gateway need run, and those that do hear of it at once.\n' +
      'Without, or with --admin, they go through the admin listener of a running gateway.',
    examples: ['evalgate keys create --help', 'evalgate keys list'],
  };
  return makeGroup(texts, terminal)
    .addCommand(createKeyCommand(terminal))
    .addCommand(listKeysCommand(terminal))
    .addCommand(showKeyCommand(terminal))
    .addCommand(deprecateKeyCommand(terminal))
    .addCommand(revokeKeyCommand(terminal))
    .addCommand(rotateKeyCommand(terminal))
    .addCommand(importKeysCommand(terminal));
}
