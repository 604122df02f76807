/** How keys are shown to people, and with `--json`. */
import { columns, printable } from '../table.ts';
import type { KeyView } from './key-admin.ts';

/** The keys in a table, one line per key. */
export function keyTable(keys: readonly KeyView[]): string {
  if (keys.length === 0) return 'There are no keys. `evalgate keys create` makes one.';
  const heading = ['ID', 'NAME', 'STATUS', 'SCOPES', 'WORKSPACES', 'LIMITS', 'EXPIRES', 'LAST USED'];
  return columns([heading, ...keys.map(rowOf)]);
}

function rowOf(key: KeyView): string[] {
  const [first = '', ...more] = key.workspaceIds;
  return [
    key.keyId,
    key.name,
    statusOf(key),
    key.scopes.join(','),
    more.length === 0 ? first : `${first} +${more.length}`,
    limitsOf(key),
    key.expiresAt ?? 'never',
    key.lastUsedAt ?? 'never',
  ];
}

/** One key, one line per property. */
export function keyDetails(key: KeyView): string {
  return columns([
    ['id', key.keyId],
    ['name', key.name],
    ['status', statusOf(key)],
    ['scopes', key.scopes.join(', ')],
    ['workspaces', key.workspaceIds.join(', ')],
    ['limits', limitsOf(key)],
    ['quota', key.quotaId],
    ['created', key.createdAt],
    ['expires', key.expiresAt ?? 'never'],
    ['last used', key.lastUsedAt ?? 'never'],
  ]);
}

/** The answer of `create` and `rotate`: it shows the key itself, this once. */
export function issuedKeyText(key: KeyView, token: string): string {
  return `${keyDetails(key)}\n\nThe key itself, shown this once and kept nowhere:\n\n  ${printable(token)}`;
}

/** The same with `--json`: `key` is the key itself. */
export function issuedKeyDocument(key: KeyView, token: string): unknown {
  const { keyId, ...rest } = key;
  return { keyId, key: token, ...rest };
}

function statusOf({ status, expiresAt }: KeyView): string {
  const isOver = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  return isOver && status !== 'revoked' ? `${status}, expired` : status;
}

function limitsOf({ limits: { perMinute, perHour } }: KeyView): string {
  if (perMinute === null && perHour === null) return 'default';
  return `${perMinute ?? 'default'}/min ${perHour ?? 'default'}/h`;
}
