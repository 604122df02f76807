/** `evalgate keys`: the registry of API keys. */
import { type Command, Option } from 'commander';
import type { ChangedKeyView, IssuedKeyView, KeyView } from '../../operations/answers.ts';
import { type Scope, SCOPES, UUID_PATTERN } from '../../domain/vocabulary.ts';
import { canonicalSubnet } from '../../keys/client-address.ts';
import { formatDuration } from '../../time/duration.ts';
import { adminCommand, callAdmin, callForLines } from '../admin-client.ts';
import {
  CliError,
  type CommandTexts,
  durationBetween,
  integerBetween,
  makeGroup,
  matching,
  parseKeyId,
  parser,
  print,
  repeated,
  wrongCall,
} from '../command.ts';
import { columns, countText } from '../format.ts';
import { messageOf, systemCode } from '../../log/error.ts';
import { deliver, writeJson } from '../output.ts';
import { importKeysCommand } from './import.ts';
import { SUMMARIES } from '../summaries.ts';

const DAY_MS = 86_400_000;

export function keysCommand(): Command {
  return makeGroup({
    name: 'keys',
    summary: SUMMARIES.keys,
    details: 'The commands act on a running gateway through its admin listener.',
    examples: ['evalgate keys create --help', 'evalgate keys list'],
  })
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(statusCommand('deprecate', 'end the use of a key: its holder gets 403', DEPRECATE_DETAILS))
    .addCommand(statusCommand('activate', 'make a deprecated key active again'))
    .addCommand(statusCommand('revoke', 'end a key for good: its holder gets 403, its record stays'))
    .addCommand(editCommand())
    .addCommand(rotateCommand())
    .addCommand(acknowledgeLossCommand())
    .addCommand(exportCommand())
    .addCommand(importKeysCommand());
}

function oneKeyCommand(texts: CommandTexts): Command {
  return adminCommand(texts).argument('<id>', 'the id of the key, not the key itself', parseKeyId);
}

const STATUSES = { deprecate: 'deprecated', activate: 'active' } as const;
const DEPRECATE_DETAILS = '`activate` makes it active again; `revoke` is for good.';

function statusCommand(name: keyof typeof STATUSES | 'revoke', summary: string, details?: string): Command {
  const texts = { name, summary, examples: [`evalgate keys ${name} key_7Hq2Ls0vXb3N`] };
  return oneKeyCommand(details === undefined ? texts : { ...texts, details }).action(
    async (id: string, _options, command: Command) => {
      const params = { keyId: id };
      const { key, warning } =
        name === 'revoke'
          ? await revoke(command, id)
          : await callAdmin(command, (routes) => routes.editKey, { params, body: { status: STATUSES[name] } });
      const effect =
        name === 'revoke'
          ? `\n\nKey ${id} is refused from now on; by a gateway that cannot reach Redis, after keys.grace at the latest.`
          : '';
      const doubt = warning === null ? '' : `\n\nWARNING: ${warning}`;
      print(command, { ...key, warning }, `${keyDetails(key)}${effect}${doubt}`);
    },
  );
}

function showCommand(): Command {
  const summary = 'show one key, and its requests of the last hour';
  return oneKeyCommand({ name: 'show', summary, examples: ['evalgate keys show key_7Hq2Ls0vXb3N'] }).action(
    async (id: string, _options, command: Command) => {
      const { key, lastHour } = await callAdmin(command, (routes) => routes.showKey, { params: { keyId: id } });
      const { requests, refused, problem } = lastHour;
      const doubt = problem === null ? '' : `; ONE PROCESS ONLY: ${problem}`;
      const use = `${requests} in the last hour, ${refused} of them refused with 429${doubt}`;
      const text = columns([...keyRows(key), ['requests', use]]);
      print(command, { ...key, lastHour: { requests, refused, problem } }, text);
    },
  );
}

function listCommand(): Command {
  const examples = ['evalgate keys list', "evalgate keys list --json | jq -r '.keys[].keyId'"];
  return adminCommand({
    name: 'list',
    summary: 'list all keys, whatever their status',
    details: 'With Redis, the time of the last use is up to 30 seconds late.',
    examples,
  }).action(async (_options, command: Command) => {
    const keys: KeyView[] = [];
    const query = new URLSearchParams({ limit: '1000' });
    for (;;) {
      const page = await callAdmin(command, (routes) => routes.listKeys, { query });
      keys.push(...page.keys);
      if (page.nextCursor === null) break;
      query.set('cursor', page.nextCursor);
    }
    print(command, { keys }, keyTable(keys));
  });
}

interface KeyOptions {
  readonly name?: string;
  readonly workspace?: readonly string[];
  readonly scope?: readonly Scope[];
  readonly perMinute?: number | 'default';
  readonly perHour?: number | 'default';
  readonly expires?: number | 'never';
  /** In their canonical form, or `ANY`. */
  readonly from?: readonly string[];
}

/** In place of addresses. */
const ANY = 'any';

/** Options for the members of a key. A new key must have the first three. */
function withMembers(command: Command): Command {
  const name = new Option('--name <text>', 'what the key is for');
  const workspace = new Option(
    '--workspace <uuid...>',
    'a workspace that the key may see; repeat it for more, up to 50',
  );
  const scope = new Option('--scope <scope...>', 'what the key may read; repeat it for more');
  const addresses = new Option(
    '--from <cidr...>',
    'an address or subnet that it may be used from; repeat it for more, up to 50; or any',
  );
  const limit = orWord('default', integerBetween(1, 1_000_000_000));
  const lifetime = orWord('never', durationBetween(1, 36_500 * DAY_MS));
  return command
    .addOption(name.argParser(matching(/\S/, 'a text that is not blank')))
    .addOption(workspace.argParser(repeated(matching(UUID_PATTERN, 'a UUID'))))
    .addOption(scope.choices(SCOPES))
    .option('--per-minute <n>', "requests in any 60 s, or default for the gateway's limit", limit)
    .option('--per-hour <n>', "requests in any 3600 s, or default for the gateway's limit", limit)
    .option('--expires <duration>', 'when it ends, from now, such as 90d; or never', lifetime)
    .addOption(addresses.argParser(repeated(subnet)));
}

const subnet = parser(
  (text) => (text === ANY ? text : canonicalSubnet(text)),
  'a subnet or an address, such as 203.0.113.0/24, 2001:db8::/32 or 203.0.113.7; or any',
);

/** A parser that also takes a word. */
function orWord(word: string, parse: (text: string) => number): (text: string) => number | string {
  return (text) => (text === word ? word : parse(text));
}

/** As the admin listener takes them; those that were not given are undefined. */
function membersOf({ name, workspace, scope, perMinute, perHour, expires, from }: KeyOptions) {
  if (from !== undefined && from.length > 1 && from.includes(ANY)) {
    throw wrongCall(`--from ${ANY} means every address: give it alone, or only addresses.`);
  }
  return {
    name,
    workspaceIds: workspace,
    scopes: scope,
    perMinute: perMinute === 'default' ? null : perMinute,
    perHour: perHour === 'default' ? null : perHour,
    expiresAt: typeof expires === 'number' ? new Date(Date.now() + expires).toISOString() : expires && null,
    from: from?.includes(ANY) === true ? null : from,
  };
}

function createCommand(): Command {
  const command = adminCommand({
    name: 'create',
    summary: 'issue a key and print it, once',
    details:
      'It needs --name, --workspace and --scope. Only the hash of the key is stored: a lost key has to be replaced. A key that cannot be printed is revoked at once.',
    examples: [
      'evalgate keys create --name "Acme export" --workspace 2393e09e-a0b1-4849-8887-0fb942eae255 --scope reports.read',
      'evalgate keys create --name nightly --workspace UUID --scope reports.read --from 203.0.113.0/24 --from 2001:db8::/32',
      'evalgate keys create --name dashboard --workspace UUID1 --workspace UUID2 --scope calls.read --scope coaching.read --per-minute 30 --expires 90d --json',
    ],
  });
  return withMembers(command).action(async (options: KeyOptions) => {
    const { name = '', workspaceIds = [], scopes = [], ...rest } = membersOf(options);
    const given = { '--name': name, '--workspace': workspaceIds, '--scope': scopes };
    const missing = Object.entries(given).flatMap(([option, { length }]) => (length === 0 ? [option] : []));
    if (missing.length > 0)
      throw wrongCall(`A new key needs ${missing.join(', ')} as well. See evalgate keys create --help.`);
    const wanted = { name, workspaceIds, scopes, ...rest };
    const issued = await callAdmin(command, (routes) => routes.createKey, { body: wanted });
    await printIssuedKey(command, issued, { note: '', takeBack: () => revoke(command, issued.key.keyId) });
  });
}

function editCommand(): Command {
  const command = oneKeyCommand({
    name: 'edit',
    summary: 'change the name, workspaces, scopes, limits, expiry or addresses of a key',
    details:
      'Options that are left out change nothing. Workspaces, scopes and addresses replace those that the key has.',
    examples: [
      'evalgate keys edit key_7Hq2Ls0vXb3N --name "Acme export" --expires never',
      'evalgate keys edit key_7Hq2Ls0vXb3N --workspace UUID1 --workspace UUID2 --per-minute 30 --per-hour default',
    ],
  });
  return withMembers(command).action(async (id: string, options: KeyOptions) => {
    const edit = membersOf(options);
    if (Object.values(edit).every((value) => value === undefined)) {
      throw wrongCall(
        'Nothing to change: give --name, --workspace, --scope, --per-minute, --per-hour, --expires or --from.',
      );
    }
    const { key } = await callAdmin(command, (routes) => routes.editKey, { params: { keyId: id }, body: edit });
    print(command, key, keyDetails(key));
  });
}

function rotateCommand(): Command {
  const parseOverlap = durationBetween(0, 365 * DAY_MS);
  const overlap = new Option('--overlap <duration>', 'how long both keys are good').argParser(parseOverlap);
  return oneKeyCommand({
    name: 'rotate',
    summary: 'issue a successor of a key and print it, once',
    details: 'It has the same rights and shares the quota. The old key ends after the overlap.',
    examples: ['evalgate keys rotate key_7Hq2Ls0vXb3N', 'evalgate keys rotate key_7Hq2Ls0vXb3N --overlap 7d --json'],
  })
    .addOption(overlap.default(DAY_MS, '24h'))
    .action(async (id: string, { overlap: overlapMs }: { overlap: number }, command: Command) => {
      const params = { keyId: id };
      const { key: old } = await callAdmin(command, (routes) => routes.showKey, { params });
      const body = { overlap: formatDuration(overlapMs) };
      const issued = await callAdmin(command, (routes) => routes.rotateKey, { params, body });
      const end = new Date(Date.parse(issued.key.createdAt) + overlapMs).toISOString();
      await printIssuedKey(command, issued, {
        note: `\n\nThe old key, ${id}, ends at ${end}, or when it expires if that is earlier.`,
        takeBack: async () => {
          await revoke(command, issued.key.keyId);
          await callAdmin(command, (routes) => routes.editKey, { params, body: { expiresAt: old.expiresAt } });
        },
      });
    });
}

function acknowledgeLossCommand(): Command {
  return adminCommand({
    name: 'acknowledge-loss',
    summary: 'acknowledge that Redis lost keys: gateways report it no longer',
    details: 'It brings no key back: `import` does.',
    examples: ['evalgate keys acknowledge-loss'],
  }).action(async (_options, command: Command) => {
    const loss = await callAdmin(command, (routes) => routes.acknowledgeLoss);
    const { lostAt, keys } = loss;
    print(
      command,
      loss,
      lostAt === null ? 'No loss is known.' : `Acknowledged: the loss of ${countText(keys, 'key')} at ${lostAt}.`,
    );
  });
}

function exportCommand(): Command {
  return adminCommand({
    name: 'export',
    summary: 'print all keys, hashed, as the JSON lines that `import` takes',
    details: 'It takes a token of the role keys or admin: the hash of a key that can be guessed is as good as the key.',
    examples: ['evalgate keys export > keys.jsonl'],
  }).action(async ({ json }: { json?: boolean }, command: Command) => {
    const keys: unknown[] = [];
    for await (const key of callForLines(command, (routes) => routes.exportKeys)) {
      if (json === true) keys.push(key);
      else writeJson(key);
    }
    if (json === true) print(command, { keys }, '');
  });
}

/** One line per key. */
function keyTable(keys: readonly KeyView[]): string {
  if (keys.length === 0) return 'There are no keys. `evalgate keys create` makes one.';
  return columns([
    ['ID', 'NAME', 'STATUS', 'SCOPES', 'WORKSPACES', 'LIMITS', 'FROM', 'EXPIRES', 'LAST USED'],
    ...keys.map((key) => {
      const [workspaces, from] = [shortened(key.workspaceIds), shortened(key.from ?? [ANY])];
      const { keyId, name, scopes, expiresAt, lastUsedAt } = key;
      const times = [expiresAt ?? 'never', lastUsedAt ?? 'never'];
      return [keyId, name, statusText(key), scopes.join(','), workspaces, limitsText(key), from, ...times];
    }),
  ]);
}

/** The first of some, and how many more there are. */
function shortened([first = '', ...more]: readonly string[]): string {
  return more.length === 0 ? first : `${first} +${more.length}`;
}

/** One row per property. */
function keyRows(key: KeyView): readonly (readonly string[])[] {
  return [
    ['id', key.keyId],
    ['name', key.name],
    ['status', statusText(key)],
    ['scopes', key.scopes.join(', ')],
    ['workspaces', key.workspaceIds.join(', ')],
    ['limits', limitsText(key)],
    ['quota', key.quotaId],
    ['created', key.createdAt],
    ['expires', key.expiresAt ?? 'never'],
    ['from', key.from?.join(', ') ?? 'any address'],
    ['last used', key.lastUsedAt ?? 'never'],
  ];
}

function keyDetails(key: KeyView): string {
  return columns(keyRows(key));
}

function revoke(command: Command, keyId: string): Promise<ChangedKeyView> {
  return callAdmin(command, (routes) => routes.revokeKey, { params: { keyId } });
}

/**
 * Prints a new key with its token, which is shown only this once. In the document `key` is the token. If nobody could see it,
 * it is taken back: `takeBack` undoes what was made. Rejects with CliError then.
 */
async function printIssuedKey(
  command: Command,
  { key, token }: IssuedKeyView,
  { note, takeBack }: { readonly note: string; readonly takeBack: () => Promise<unknown> },
): Promise<void> {
  const { keyId, ...rest } = key;
  const text = `${keyDetails(key)}\n\nThe key itself, shown this once and stored nowhere:\n\n  ${token}${note}`;
  const { json } = command.opts<{ json?: boolean }>();
  try {
    await deliver(json === true ? { document: { keyId, key: token, ...rest } } : { text });
  } catch (error) {
    const lost = `The new key could not be printed (${systemCode(error) ?? messageOf(error)})`;
    await takeBack().catch((failure: unknown) => {
      throw new CliError(`${lost}, and it could not be taken back: ${messageOf(failure)}\nRevoke ${keyId} yourself.`);
    });
    throw new CliError(`${lost}, so it was taken back: ${keyId} is revoked.`);
  }
}

function statusText({ status, expiresAt }: KeyView): string {
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  return isExpired && status !== 'revoked' ? `${status}, expired` : status;
}

function limitsText({ limits: { perMinute, perHour } }: KeyView): string {
  if (perMinute === null && perHour === null) return 'default';
  return `${perMinute ?? 'default'}/min ${perHour ?? 'default'}/h`;
}
