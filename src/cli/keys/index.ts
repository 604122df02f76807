/** `evalgate keys`: the registry of API keys. */
import { type Command, Option } from 'commander';
import { answer, type CommandTexts, durationBetween, makeCommand, makeGroup } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { createKeyCommand } from './create.ts';
import { editKeyCommand } from './edit.ts';
import { importKeysCommand } from './import.ts';
import { type KeyAdmin, type KeyView, useKeyAdmin, withKeyAdminOption, withKeyId } from './key-admin.ts';
import { issuedKeyDocument, issuedKeyText, keyDetails, keyTable } from './view.ts';

const DAY_MS = 86_400_000;

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
    .addCommand(activateKeyCommand(terminal))
    .addCommand(revokeKeyCommand(terminal))
    .addCommand(editKeyCommand(terminal))
    .addCommand(rotateKeyCommand(terminal))
    .addCommand(exportKeysCommand(terminal))
    .addCommand(importKeysCommand(terminal));
}

function listKeysCommand(terminal: Terminal): Command {
  const examples = ['evalgate keys list', "evalgate keys list --json | jq -r '.keys[].keyId'"];
  const command = makeCommand({ name: 'list', summary: 'list all keys, whatever their status', examples }, terminal);
  return withKeyAdminOption(command, terminal).action(async () => {
    const keys = await useKeyAdmin(command, terminal, (admin) => admin.list());
    answer(terminal, command, { document: { keys }, text: keyTable(keys) });
  });
}

type Act = (admin: KeyAdmin, keyId: string) => Promise<KeyView>;

/** A command on one key that answers with it. */
function oneKeyCommand(texts: CommandTexts, act: Act, terminal: Terminal): Command {
  const command = withKeyAdminOption(withKeyId(makeCommand(texts, terminal)), terminal);
  return command.action(async (id: string) => {
    const key = await useKeyAdmin(command, terminal, (admin) => act(admin, id));
    answer(terminal, command, { document: key, text: keyDetails(key) });
  });
}

function showKeyCommand(terminal: Terminal): Command {
  const texts = { name: 'show', summary: 'show one key', examples: ['evalgate keys show k_7Hq2'] };
  return oneKeyCommand(texts, (admin, id) => admin.show(id), terminal);
}

function deprecateKeyCommand(terminal: Terminal): Command {
  const texts = {
    name: 'deprecate',
    summary: 'end the use of a key: its holder gets 403',
    details: '`activate` makes it active again; `revoke` is for good.',
    examples: ['evalgate keys deprecate k_7Hq2'],
  };
  return oneKeyCommand(texts, (admin, id) => admin.edit(id, { status: 'deprecated' }), terminal);
}

function activateKeyCommand(terminal: Terminal): Command {
  const texts = {
    name: 'activate',
    summary: 'make a deprecated key active again',
    examples: ['evalgate keys activate k_7Hq2'],
  };
  return oneKeyCommand(texts, (admin, id) => admin.edit(id, { status: 'active' }), terminal);
}

function revokeKeyCommand(terminal: Terminal): Command {
  const texts = {
    name: 'revoke',
    summary: 'end a key for good: its holder gets 403, its record stays',
    examples: ['evalgate keys revoke k_7Hq2'],
  };
  return oneKeyCommand(texts, (admin, id) => admin.revoke(id), terminal);
}

function rotateKeyCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'rotate',
      summary: 'issue a successor of a key and print it, once',
      details: 'It has the same rights and shares the quota. The old key ends after the overlap.',
      examples: ['evalgate keys rotate k_7Hq2', 'evalgate keys rotate k_7Hq2 --overlap 7d --json'],
    },
    terminal,
  );
  return withKeyAdminOption(withKeyId(command), terminal)
    .addOption(
      new Option('--overlap <duration>', 'how long both keys are good')
        .argParser(durationBetween(0, 365 * DAY_MS))
        .default(DAY_MS, '24h'),
    )
    .action(async (id: string) => {
      const { overlap } = command.opts<{ overlap: number }>();
      const { key, token } = await useKeyAdmin(command, terminal, (admin) => admin.rotate(id, overlap));
      answer(terminal, command, { document: issuedKeyDocument(key, token), text: issuedKeyText(key, token) });
    });
}

function exportKeysCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'export',
      summary: 'print all keys as JSON lines of hashed keys, as `import` takes them',
      details: 'It reads Redis, and needs REDIS_URL: hashes never leave the admin listener.',
      examples: ['evalgate keys export > keys.jsonl'],
    },
    terminal,
  );
  return withKeyAdminOption(command, terminal).action(async () => {
    const keys = await useKeyAdmin(command, terminal, (admin) => admin.exportKeys());
    if (command.opts<{ json?: boolean }>().json === true)
      return answer(terminal, command, { document: { keys }, text: '' });
    for (const key of keys) terminal.out(`${JSON.stringify(key)}\n`);
  });
}
