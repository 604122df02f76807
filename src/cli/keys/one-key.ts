/** `evalgate keys show`, `deprecate` and `revoke`: commands on one key that answer with it. */
import type { Command } from 'commander';
import { ID_PATTERN } from '../../domain/records.ts';
import { answer, type CommandTexts, makeCommand, matching } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { atKeyOffice, withOfficeOption } from './at-office.ts';
import type { KeyOffice, KeyView } from './office.ts';
import { keyDetails } from './view.ts';

/** Adds the argument ID. A key itself is never taken for its id: it would be shown and logged. */
export function withKeyId(command: Command): Command {
  const parseId = matching(ID_PATTERN, 'the id of a key, as `evalgate keys list` shows it');
  return command.argument('<id>', 'the id of the key, not the key itself', (text) =>
    matching(/^(?!evg_)/, 'the id of the key, not the key itself')(parseId(text)),
  );
}

type Act = (office: KeyOffice, keyId: string) => Promise<KeyView>;

function oneKeyCommand(texts: CommandTexts, act: Act, terminal: Terminal): Command {
  const command = withOfficeOption(withKeyId(makeCommand(texts, terminal)), terminal);
  return command.action(async (id: string) => {
    const key = await atKeyOffice(command, terminal, (office) => act(office, id));
    answer(terminal, command, { document: key, text: keyDetails(key) });
  });
}

export function showKeyCommand(terminal: Terminal): Command {
  const texts = { name: 'show', summary: 'show one key', examples: ['evalgate keys show k_7Hq2'] };
  return oneKeyCommand(texts, (office, id) => office.show(id), terminal);
}

export function deprecateKeyCommand(terminal: Terminal): Command {
  const texts = {
    name: 'deprecate',
    summary: 'end the use of a key: its holder gets 403',
    details: 'The key can be made active again through the admin listener; `revoke` is for good.',
    examples: ['evalgate keys deprecate k_7Hq2'],
  };
  return oneKeyCommand(texts, (office, id) => office.deprecate(id), terminal);
}

export function revokeKeyCommand(terminal: Terminal): Command {
  const texts = {
    name: 'revoke',
    summary: 'end a key for good: its holder gets 403, its record stays',
    examples: ['evalgate keys revoke k_7Hq2'],
  };
  return oneKeyCommand(texts, (office, id) => office.revoke(id), terminal);
}
