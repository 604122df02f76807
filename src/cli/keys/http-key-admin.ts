/** Keys through the admin listener of a running gateway. */
import { z } from 'zod';
import { formatDuration } from '../../duration.ts';
import { KEY_STATUSES } from '../../keys/key.ts';
import type { AdminClient, AdminRequest } from '../admin-client.ts';
import { CliError } from '../errors.ts';
import type { IssuedKeyView, KeyAdmin, KeyView } from './key-admin.ts';

const keyViewSchema = z.looseObject({
  keyId: z.string(),
  name: z.string(),
  status: z.enum(KEY_STATUSES),
  workspaceIds: z.array(z.string()),
  scopes: z.array(z.string()),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
  limits: z.object({ perMinute: z.number().nullable(), perHour: z.number().nullable() }),
  quotaId: z.string(),
  lastUsedAt: z.string().nullable(),
});

const oneKeySchema = z.object({ key: keyViewSchema });
/** A gateway of 0.1 answers with all keys at once and without a cursor. */
const pageSchema = z.object({ keys: z.array(keyViewSchema), nextCursor: z.string().nullish() });
const issuedKeySchema = z.object({ key: keyViewSchema, token: z.string() });
const importedSchema = z.object({ added: z.number(), replaced: z.number() });

const FIRST_PAGE = '/api/keys?limit=1000';

const NO_EXPORT =
  'The hashes of keys never leave the admin listener: set REDIS_URL to the Redis of the gateways, and export from there without --admin.';

export function httpKeyAdmin(client: AdminClient): KeyAdmin {
  const call = async <T>(request: AdminRequest<T>): Promise<T> => {
    try {
      return await client.call(request);
    } catch (error) {
      throw error instanceof CliError ? inCommands(error) : error;
    }
  };
  const issue = (path: string, body: unknown): Promise<IssuedKeyView> =>
    call({ method: 'POST', path, body, answer: issuedKeySchema });
  const one = async (request: Omit<AdminRequest<unknown>, 'answer'>): Promise<KeyView> =>
    (await call({ ...request, answer: oneKeySchema })).key;
  return {
    create: (wanted) => issue('/api/keys', wanted),
    list: async () => {
      const keys: KeyView[] = [];
      for (let path: string | null = FIRST_PAGE; path !== null;) {
        const page: z.output<typeof pageSchema> = await call({ method: 'GET', path, answer: pageSchema });
        keys.push(...page.keys);
        const { nextCursor } = page;
        path = typeof nextCursor === 'string' ? `${FIRST_PAGE}&cursor=${encodeURIComponent(nextCursor)}` : null;
      }
      return keys;
    },
    show: (keyId) => one({ method: 'GET', path: `/api/keys/${keyId}` }),
    edit: (keyId, edit) => one({ method: 'PATCH', path: `/api/keys/${keyId}`, body: edit }),
    revoke: (keyId) => one({ method: 'DELETE', path: `/api/keys/${keyId}` }),
    rotate: (keyId, overlapMs) => issue(`/api/keys/${keyId}/rotate`, { overlap: formatDuration(overlapMs) }),
    exportKeys: async () => {
      throw new CliError(NO_EXPORT);
    },
    importKeys: (lines) => {
      const body = { keys: lines.map(({ written }) => written) };
      return call({ method: 'POST', path: '/api/keys/import', body, answer: importedSchema });
    },
    close: async () => {},
  };
}

/** The listener names its own addresses; on a command line there is a command for it. */
function inCommands(error: CliError): CliError {
  return new CliError(error.message.replace('GET /api/keys lists', '`evalgate keys list` shows'), error.exitCode);
}
