/** /api/keys: the key registry, for operators. Every change that is made goes into the audit. */
import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import { ID_PATTERN } from '../domain/records.ts';
import {
  type ApiKey,
  byCreation,
  type ImportedKey,
  type KeyDirectory,
  type KeyEdit,
  type PlaceInList,
} from '../keys/key.ts';
import { attempt } from './attempt.ts';
import type { Audit } from './audit.ts';
import { BODY_LIMIT_BYTES, IMPORT_LIMIT_BYTES, readJson } from './body.ts';
import { callerOf, type EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { check, faulty, mustBe } from './faults.ts';
import {
  IMPORT_RULES,
  importedKeyRules,
  keyEditRules,
  looksLikeToken,
  newKeyRules,
  ROTATE_RULES,
} from './key-rules.ts';
import {
  askedEdit,
  askedImport,
  askedKey,
  editAction,
  keyCreated,
  keyEdited,
  keyRotated,
  keysImported,
} from './key-changes.ts';
import { keyView } from './key-view.ts';
import { badParameter, queryOf } from './query.ts';

export interface KeyEndpointOptions {
  readonly registry: KeyDirectory;
  readonly audit: Audit;
  readonly clock: Clock;
}

export function keyEndpoints(options: KeyEndpointOptions): readonly Endpoint[] {
  const { registry } = options;
  const one = '/api/keys/:keyId';
  return [
    {
      method: 'GET',
      path: '/api/keys',
      what: 'the API keys that were issued, in pages, without their secrets',
      handle: async (ctx) => {
        ctx.body = pageOf(ctx, await registry.list());
      },
    },
    {
      method: 'POST',
      path: '/api/keys',
      what: 'issue a key; the answer shows it this once',
      handle: (ctx) => create(ctx, options),
    },
    {
      method: 'POST',
      path: '/api/keys/import',
      what: 'take over keys that are hashed already, all or none',
      handle: (ctx) => importKeys(ctx, options),
    },
    {
      method: 'GET',
      path: one,
      what: 'one key',
      handle: async (ctx) => {
        ctx.body = { key: keyView(await existing(ctx, registry)) };
      },
    },
    {
      method: 'PATCH',
      path: one,
      what: 'change a key: its name, status, workspaces, scopes, limits or expiry',
      handle: async (ctx) => {
        await edit(ctx, options, mustBe(keyEditRules(options.clock.nowMs()), await readJson(ctx, BODY_LIMIT_BYTES)));
      },
    },
    {
      method: 'DELETE',
      path: one,
      what: 'revoke a key for good; its record stays',
      handle: (ctx) => edit(ctx, options, { status: 'revoked' }),
    },
    {
      method: 'POST',
      path: `${one}/rotate`,
      what: 'issue a successor with the same rights and quota; the old key ends after the overlap',
      handle: (ctx) => rotate(ctx, options),
    },
  ];
}

const DEFAULT_PAGE = 100;
const LONGEST_PAGE = 1000;
const PAGE_QUERY = {
  limit: `an integer from 1 to ${LONGEST_PAGE}; ${DEFAULT_PAGE} if it is left out`,
  cursor: 'the nextCursor of the page before',
};

/** A cursor is the place of a page's last key, so that keys that are added between two pages move none out of sight. */
function pageOf(ctx: EndpointContext, keys: readonly ApiKey[]): unknown {
  const query = queryOf(ctx, { allowed: PAGE_QUERY });
  const limit = limitOf(query.get('limit')?.[0]);
  const after = placeOf(query.get('cursor')?.[0]);
  const rest = after === null ? keys : keys.filter((key) => byCreation(key, after) > 0);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const isLast = last === undefined || rest.length === page.length;
  return { keys: page.map(keyView), nextCursor: isLast ? null : `${last.createdAtMs}.${last.keyId}` };
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PAGE;
  const limit = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > LONGEST_PAGE) throw badParameter('limit', text, PAGE_QUERY.limit);
  return limit;
}

function placeOf(cursor: string | undefined): PlaceInList | null {
  if (cursor === undefined) return null;
  const [, createdAtMs, keyId] = /^([0-9]{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(cursor) ?? [];
  if (keyId === undefined) throw badParameter('cursor', cursor, PAGE_QUERY.cursor);
  return { createdAtMs: Number(createdAtMs), keyId };
}

async function create(ctx: EndpointContext, { registry, audit, clock }: KeyEndpointOptions): Promise<void> {
  const wanted = mustBe(newKeyRules(clock.nowMs()), await readJson(ctx, BODY_LIMIT_BYTES));
  const about = { who: callerOf(ctx), action: 'key.create' };
  const change = { ...about, target: wanted.name, asked: askedKey(wanted) };
  const { key, token } = await attempt(audit, change, () => registry.create(wanted));
  await audit.record(keyCreated(about.who, key));
  ctx.status = 201;
  ctx.set('Location', `/api/keys/${key.keyId}`);
  ctx.body = { key: keyView(key), token };
}

async function edit(ctx: EndpointContext, { registry, audit }: KeyEndpointOptions, wanted: KeyEdit): Promise<void> {
  const { keyId } = await existing(ctx, registry);
  const who = callerOf(ctx);
  const change = { who, action: editAction(wanted), target: keyId, asked: askedEdit(wanted) };
  const edited = (await attempt(audit, change, () => registry.edit(keyId, wanted))) ?? noKey(keyId);
  // DELETE and PATCH may be repeated: without a change nothing is noted.
  const noted = keyEdited(who, wanted, edited);
  if (noted !== null) await audit.record(noted);
  ctx.body = { key: keyView(edited.after) };
}

async function rotate(ctx: EndpointContext, { registry, audit }: KeyEndpointOptions): Promise<void> {
  const { overlapMs } = mustBe(ROTATE_RULES, await readJson(ctx, BODY_LIMIT_BYTES));
  const before = await existing(ctx, registry);
  const { keyId } = before;
  const about = { who: callerOf(ctx), action: 'key.rotate', target: keyId };
  const change = { ...about, asked: { overlap: formatDuration(overlapMs) } };
  const { key, token } = (await attempt(audit, change, () => registry.rotate(keyId, overlapMs))) ?? noKey(keyId);
  const after = (await registry.get(keyId)) ?? before;
  await audit.record(keyRotated(about.who, { before, after, successor: key }));
  ctx.status = 201;
  ctx.set('Location', `/api/keys/${key.keyId}`);
  ctx.body = { key: keyView(key), token };
}

async function importKeys(ctx: EndpointContext, { registry, audit, clock }: KeyEndpointOptions): Promise<void> {
  const body = mustBe(IMPORT_RULES, await readJson(ctx, IMPORT_LIMIT_BYTES));
  const keys = importedKeys(body.keys, clock.nowMs());
  const about = { who: callerOf(ctx), action: 'key.import', target: 'keys' };
  const change = { ...about, asked: askedImport(keys) };
  const { added, replaced } = await attempt(audit, change, () => registry.importKeys(keys));
  await audit.record(keysImported(about.who, keys, { added, replaced }));
  ctx.body = { added, replaced };
}

/** All of them, or AdminError 400 with the faults of all. */
function importedKeys(values: readonly unknown[], nowMs: number): readonly ImportedKey[] {
  const rules = importedKeyRules(nowMs);
  const keys: ImportedKey[] = [];
  const faults: string[] = [];
  const seen = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    const checked = check(rules, value, `keys[${index}]`);
    if (checked.faults !== null) {
      faults.push(...checked.faults);
      continue;
    }
    keys.push(checked.value);
    for (const member of ['keyId', 'hash'] as const) {
      const identity = `${member} ${checked.value[member]}`;
      const first = seen.get(identity);
      if (first === undefined) seen.set(identity, index);
      else faults.push(`keys[${index}].${member}: the same as that of keys[${first}]; allowed: each ${member} once`);
    }
  }
  if (faults.length > 0) throw faulty(faults);
  return keys;
}

/** The key of the path. Throws AdminError 404 if there is none. */
async function existing(ctx: EndpointContext, registry: KeyDirectory): Promise<ApiKey> {
  const keyId = ctx.params['keyId'] ?? '';
  if (!ID_PATTERN.test(keyId) || looksLikeToken(keyId)) {
    throw new AdminError(
      404,
      'The path holds no key id: that is 1 to 64 characters of A-Z, a-z, 0-9, _ and -, and not the key itself. GET /api/keys lists the ids.',
      { privateMessage: 'not a key id' },
    );
  }
  return (await registry.get(keyId)) ?? noKey(keyId);
}

function noKey(keyId: string): never {
  throw new AdminError(404, `There is no key with the id ${keyId}. GET /api/keys lists the ids.`, {
    privateMessage: 'no such key',
  });
}
