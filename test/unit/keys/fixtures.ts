import type { ApiKey, NewKey } from '../../../src/keys/key.ts';

export const WORKSPACE_A = 'aaaaaaaa-0000-4000-8000-000000000001';
export const WORKSPACE_B = 'bbbbbbbb-0000-4000-8000-000000000002';

export const NEW_KEY: NewKey = {
  name: 'reporting',
  workspaceIds: [WORKSPACE_A],
  scopes: ['reports.read'],
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
};

export const KEY: ApiKey = {
  ...NEW_KEY,
  keyId: 'key_a',
  hash: 'a'.repeat(64),
  status: 'active',
  createdAtMs: 1000,
  quotaId: 'key_a',
  lastUsedAtMs: null,
};
