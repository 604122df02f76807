import { expect, test } from 'vitest';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeRegistry } from './suite.ts';

describeRegistry('memory', async (clock) => ({
  registry: createMemoryRegistry({ clock }),
  close: () => Promise.resolve(),
}));

test('in memory the last use is known to the millisecond, and a use never undoes a change made meanwhile', async () => {
  const clock = new ManualClock();
  const registry = createMemoryRegistry({ clock });
  const { key } = await registry.create({
    name: 'n',
    workspaceIds: ['aaaaaaaa-0000-4000-8000-000000000001'],
    scopes: ['calls.read'],
    expiresAtMs: null,
    limits: { perMinute: null, perHour: null },
  });
  await registry.setStatus(key.keyId, 'revoked');
  clock.advance(123);
  registry.touch(key);
  expect(await registry.get(key.keyId)).toEqual({ ...key, status: 'revoked', lastUsedAtMs: key.createdAtMs + 123 });
  registry.touch({ ...key, keyId: 'key_gone' });
  expect(await registry.list()).toHaveLength(1);
});
