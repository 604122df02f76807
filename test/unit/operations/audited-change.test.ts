/** Changes that fail half-way: the audit says what was done, and only what was refused before the first write is a refusal. */
import { expect, test } from 'vitest';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { erase, type Fleet } from '../../../src/cache/erase.ts';
import { purgesAlone } from '../../support/purges.ts';
import { KeyStateError } from '../../../src/keys/key.ts';
import { Audit } from '../../../src/operations/audit.ts';
import { type Change, makeChange, PartlyMadeError } from '../../../src/operations/audited-change.ts';
import { AdminError } from '../../../src/operations/errors.ts';
import { NotSentError } from '../../../src/redis/errors.ts';
import { FakeTime } from '../../support/flight-world.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const ABOUT = { who: 'ann', action: 'state.import', target: 'state', asked: { records: 2 } };

/** The answer that the caller gets, and the entries that the audit has. */
async function change<T>(make: () => Promise<T>, note: Change<T>['note'] = () => ({ from: null, to: 'made' })) {
  const audit = new Audit({ link: null, clock: new ManualClock(), sink: () => undefined });
  const answer = await makeChange(audit, { ...ABOUT, make, note }).catch((error: unknown) =>
    error instanceof AdminError ? error.publicMessage : error,
  );
  return { answer, noted: (await audit.entries()).map(({ to }) => to) };
}

const failingNote = (): never => {
  throw new RangeError('Invalid time value');
};
const failing = (error: Error) => async (): Promise<never> => {
  throw error;
};

test('a refusal is passed on, and is in no audit', async () => {
  const refusal = new KeyStateError('it is revoked');
  expect(await change(failing(refusal))).toEqual({ answer: refusal, noted: [] });
});

test.each([new RangeError('Maximum call stack size exceeded'), new TypeError('it is no function')])(
  'an error of the engine is none: %s',
  async (error) => {
    expect(await change(failing(error))).toEqual({
      answer:
        'The gateway failed in an unexpected way, so it is not known whether the change was made. Its log says why. Look whether the change was made before you repeat it.',
      noted: [{ outcome: 'unknown', asked: ABOUT.asked }],
    });
  },
);

test.each([
  [new NotSentError('no connection'), 'Redis cannot be reached', 'not made'],
  [new Error('no answer'), 'Redis gave no answer in time', 'unknown'],
])('parts that were made before one failed are in the answer and in the audit: %s', async (cause, finding, rest) => {
  const made = { keys: { added: 1 } };
  expect(await change(failing(new PartlyMadeError(made, 'keys: 1 new', cause)))).toEqual({
    answer: `${finding}, so only a part of the change was made (keys: 1 new). GET /api/audit has what was made. Repeat the change: what was made is not made twice.`,
    noted: [{ outcome: 'partly made', made, rest, asked: ABOUT.asked }],
  });
});

test('a change whose note fails is in the audit all the same', async () => {
  expect(await change(async () => 'made', failingNote)).toEqual({ answer: 'made', noted: [{ asked: ABOUT.asked }] });
});

test('an erasure that loses Redis after its purge was made is not said to be not made', async () => {
  let asked = 0;
  const fleet: Fleet = {
    ask: async () => new Map(),
    known: async () => {
      asked += 1;
      if (asked > 1) throw new NotSentError('no connection');
      return [];
    },
  };
  const time = new FakeTime();
  const purges = purgesAlone(time, () => undefined);
  const parts = { memory: new MemoryTier({ maxBytes: 1_000_000, clock: time }), shared: null, purges, fleet };
  const { answer, noted } = await change(() => erase('evaluation:ev_1', [], parts));
  expect(purges.position.sequence).toBe(1);
  expect([answer, noted]).toEqual([
    expect.stringContaining('it is not known whether the change was made'),
    [{ outcome: 'unknown', asked: ABOUT.asked }],
  ]);
});
