import { expect, test } from 'vitest';
import { KeyFlights } from '../../../src/keys/key-flights.ts';

const HASH = 'a'.repeat(64);

/** Lets everything go on that waits for nothing but its turn. */
function settle(): Promise<void> {
  return new Promise((done) => void setImmediate(done));
}

function setUp() {
  const asked: PromiseWithResolvers<string>[] = [];
  const answers: [hash: string, answer: string, askedAtMs: number][] = [];
  let nowMs = 1000;
  const flights = new KeyFlights<string>({
    ask: () => {
      const answer = Promise.withResolvers<string>();
      asked.push(answer);
      nowMs += 5;
      return answer.promise;
    },
    onAnswer: (...answer) => answers.push(answer),
    nowMs: () => nowMs,
  });
  return { flights, asked, answers };
}

test('all who ask while a look-up is under way share it, and the next one begins another', async () => {
  const { flights, asked, answers } = setUp();
  const waiting = [flights.join(HASH), flights.join(HASH), flights.join('b'.repeat(64))];
  await settle();
  expect(asked).toHaveLength(2);
  asked[0]?.resolve('one');
  asked[1]?.resolve('two');
  expect(await Promise.all(waiting)).toEqual(['one', 'one', 'two']);
  expect(answers[0]).toEqual([HASH, 'one', 1000]);
  void flights.join(HASH);
  await settle();
  expect(asked).toHaveLength(3);
});

test('a failure reaches all who wait, is told to nobody else, and is not remembered', async () => {
  const { flights, asked, answers } = setUp();
  const waiting = Promise.allSettled([flights.join(HASH), flights.join(HASH)]);
  await settle();
  asked[0]?.reject(new Error('down'));
  expect((await waiting).map((result) => result.status)).toEqual(['rejected', 'rejected']);
  expect(answers).toEqual([]);
  const again = flights.join(HASH);
  await settle();
  asked[1]?.resolve('up');
  expect(await again).toBe('up');
});

test.each(['overtake', 'overtakeAll'] as const)(
  'an answer from before a change is asked for again (%s)',
  async (by) => {
    const { flights, asked, answers } = setUp();
    const waiting = flights.join(HASH);
    await settle();
    flights[by](HASH);
    asked[0]?.resolve('old');
    await settle();
    expect(answers).toEqual([]);
    asked[1]?.resolve('new');
    expect(await waiting).toBe('new');
    expect(answers).toEqual([[HASH, 'new', 1005]]);
  },
);

test('a change of another key overtakes nothing', async () => {
  const { flights, asked } = setUp();
  const waiting = flights.join(HASH);
  await settle();
  flights.overtake('b'.repeat(64));
  asked[0]?.resolve('answer');
  expect(await waiting).toBe('answer');
});

test('where changes never end, the third answer is given to those who wait and kept by nobody', async () => {
  const { flights, asked, answers } = setUp();
  const waiting = flights.join(HASH);
  for (const answer of ['first', 'second', 'third']) {
    await settle();
    flights.overtake(HASH);
    asked.at(-1)?.resolve(answer);
  }
  expect(await waiting).toBe('third');
  expect(asked).toHaveLength(3);
  expect(answers).toEqual([]);
});
