import { expect, test } from 'vitest';
import { attempt } from '../../../src/admin/attempt.ts';
import { createAudit } from '../../../src/admin/audit.ts';
import { AdminError } from '../../../src/admin/errors.ts';
import { RegistryUnavailableError } from '../../../src/keys/key.ts';
import { afterChange, NotSentError } from '../../../src/redis/connection.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const UNSENT = new NotSentError('the state Redis does not answer');
const CHANGE = { who: 'alice', action: 'cache.ttl.set', target: 'list' };

/** What the caller is told, and what the audit has. */
async function outcomeOf(run: () => Promise<unknown>) {
  const audit = createAudit({ clock: new ManualClock(), capacity: 9, sink: () => undefined });
  const error: unknown = await attempt(audit, { ...CHANGE, asked: { fresh: '30s' } }, run).catch(
    (reason: unknown) => reason,
  );
  if (!(error instanceof AdminError)) throw new Error('it did not fail as it should');
  return { status: error.status, message: error.publicMessage, entries: await audit.entries() };
}

test('a change without an answer is audited with what was asked', async () => {
  const { status, message, entries } = await outcomeOf(() => Promise.reject(new Error('Command timed out')));
  expect([status, message]).toEqual([503, expect.stringContaining('it is not known whether the change was made')]);
  expect(entries).toMatchObject([{ ...CHANGE, from: null, to: { outcome: 'unknown', asked: { fresh: '30s' } } }]);
});

test.each([UNSENT, new RegistryUnavailableError('Redis cannot be asked', { cause: UNSENT })])(
  'a change that could not be sent was not made: %s',
  async (reason) => {
    const { status, message, entries } = await outcomeOf(() => Promise.reject(reason));
    expect([status, message]).toEqual([503, expect.stringContaining('so the change was not made')]);
    expect(entries).toEqual([]);
  },
);

test('where only what follows a change could not be sent, nobody is told that it was not made', async () => {
  const { message, entries } = await outcomeOf(() => afterChange(() => Promise.reject(UNSENT)));
  expect(message).toContain('it is not known whether the change was made');
  expect(entries).toHaveLength(1);
});
