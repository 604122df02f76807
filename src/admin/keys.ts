/** /api/keys and /api/state: the key registry and the whole state, for operators. Every change that is made goes into the audit. */
import { ID_PATTERN } from '../domain/vocabulary.ts';
import { type ApiKey, byCreation, type ImportedKey, type KeyEdit, type PlaceInList } from '../keys/key.ts';
import { type AnswerOf, ROUTES } from '../operations/api.ts';
import type { ChangedKeyView, IssuedKeyView } from '../operations/answers.ts';
import {
  IMPORT_LIMIT_BYTES,
  importBody,
  importedKeyBody,
  keyEditBody,
  looksLikeToken,
  newKeyBody,
  rotateBody,
  stateBody,
} from '../operations/bodies.ts';
import { countedOf } from './cache.ts';
import {
  type AdminOptions,
  callerOf,
  endpoint,
  type Endpoint,
  type EndpointContext,
  linesEndpoint,
} from './endpoint.ts';
import { AdminError } from '../operations/errors.ts';
import { check, faulty } from '../operations/input.ts';
import { readBody, readQuery } from './input.ts';
import {
  acknowledgeLoss,
  createKey,
  editKey,
  existingKey,
  importKeys,
  type KeyChanger,
  keyView,
  rotateKey,
} from '../operations/key-changes.ts';
import { exportedKey, importState, readRecords, stateLines } from '../operations/state.ts';

export function keyEndpoints(options: AdminOptions): readonly Endpoint[] {
  const { registry, operations, clock, log } = options;
  const { audit } = operations;
  const by = (ctx: EndpointContext): KeyChanger => ({ registry, audit, who: callerOf(ctx).name });
  const edit = async (ctx: EndpointContext, wanted: KeyEdit): Promise<ChangedKeyView> => {
    const keyId = keyIdOf(ctx);
    const changed = await editKey(by(ctx), keyId, wanted);
    if (changed.warning !== null) log.warn({ keyId, status: changed.key.status }, `key changed: ${changed.warning}`);
    return changed;
  };

  return [
    endpoint(ROUTES.listKeys, async (ctx) => {
      const { page, nextCursor } = pageOf(await registry.list(), readQuery(ctx, ROUTES.listKeys.query));
      return { keys: page.map(keyView), nextCursor };
    }),
    endpoint(ROUTES.createKey, async (ctx) => {
      const wanted = await readBody(ctx, newKeyBody(clock.nowMs()));
      return located(ctx, await createKey(by(ctx), wanted));
    }),
    endpoint(ROUTES.importKeys, async (ctx) => {
      const { keys, dryRun } = await readBody(ctx, importBody(clock.nowMs()), IMPORT_LIMIT_BYTES);
      return importKeys(by(ctx), importedKeys(keys), dryRun);
    }),
    endpoint(ROUTES.showKey, async (ctx) => {
      const key = keyView(await existingKey(registry, keyIdOf(ctx)));
      const { keys, ...counted } = await keyUse(options);
      const { requests, refused } = keys.find(({ keyId }) => keyId === key.keyId) ?? { requests: 0, refused: 0 };
      return { key, lastHour: { ...counted, requests, refused } };
    }),
    endpoint(ROUTES.keyUse, () => keyUse(options)),
    endpoint(ROUTES.editKey, async (ctx) => edit(ctx, await readBody(ctx, keyEditBody(clock.nowMs())))),
    endpoint(ROUTES.revokeKey, (ctx) => edit(ctx, { status: 'revoked' })),
    linesEndpoint(ROUTES.exportKeys, async function* () {
      for await (const page of registry.pages()) yield page.map(exportedKey);
    }),
    endpoint(ROUTES.acknowledgeLoss, (ctx) => acknowledgeLoss(by(ctx))),
    endpoint(ROUTES.rotateKey, async (ctx) => {
      const { overlapMs } = await readBody(ctx, rotateBody());
      return located(ctx, await rotateKey(by(ctx), keyIdOf(ctx), overlapMs));
    }),
  ];
}

/** /api/state: what an import needs to bring back all that is lost with the state Redis. */
export function stateEndpoints(options: AdminOptions): readonly Endpoint[] {
  const { registry, operations, cache, clock } = options;
  const { audit, maintenance } = operations;
  const { ttl, ttlControl } = cache;
  const parts = { registry, audit, ttl, ttlControl, maintenance, clock };
  return [
    linesEndpoint(ROUTES.exportState, () => stateLines(parts)),
    endpoint(ROUTES.importState, async (ctx) => {
      const { records: written, dryRun } = await readBody(ctx, stateBody(), IMPORT_LIMIT_BYTES);
      const { records, faults } = readRecords(written, clock.nowMs(), (index) => `records[${index}]`);
      if (faults.length > 0) throw faulty(faults);
      return importState({ ...parts, who: callerOf(ctx).name }, records, dryRun);
    }),
  ];
}

async function keyUse({
  operations: { stats },
  status: { instances },
}: AdminOptions): Promise<AnswerOf<typeof ROUTES.keyUse>> {
  const { whose, since, value } = await stats.keyUse();
  return { ...countedOf(whose, instances), since, keys: value };
}

/** A cursor is the place of a page's last key, so that keys that are added between two pages move none out of sight. */
function pageOf(
  keys: readonly ApiKey[],
  { limit, cursor: after }: { readonly limit: number; readonly cursor?: PlaceInList | undefined },
): { readonly page: readonly ApiKey[]; readonly nextCursor: string | null } {
  const rest = after === undefined ? keys : keys.filter((key) => byCreation(key, after) > 0);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const isLast = last === undefined || rest.length === page.length;
  return { page, nextCursor: isLast ? null : `${last.createdAtMs}.${last.keyId}` };
}

function located(ctx: EndpointContext, issued: IssuedKeyView): IssuedKeyView {
  ctx.set('Location', `/api/keys/${issued.key.keyId}`);
  return issued;
}

/** All of them, or AdminError 400 with the faults of all. */
function importedKeys(values: readonly unknown[]): readonly ImportedKey[] {
  const keys: ImportedKey[] = [];
  const faults: string[] = [];
  const seen = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    const checked = check(importedKeyBody, value, `keys[${index}]`);
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

/** The key id of the path. Throws AdminError 404 if it is none. */
function keyIdOf(ctx: EndpointContext): string {
  const keyId = ctx.params['keyId'] ?? '';
  if (ID_PATTERN.test(keyId) && !looksLikeToken(keyId)) return keyId;
  throw new AdminError(
    404,
    'The path holds no key id: that is 1 to 64 characters of A-Z, a-z, 0-9, _ and -, and not the key itself. GET /api/keys lists the ids.',
    { privateMessage: 'not a key id' },
  );
}
