import { describe, expect, onTestFinished, test } from 'vitest';
import { type HeardLink, RedisHearing } from '../../../src/cache/redis-hearing.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';

function adder(listeners: Set<() => void>) {
  return (listener: (reason: Error) => void) => {
    const call = (): void => listener(new Error('lost'));
    listeners.add(call);
    return (): void => void listeners.delete(call);
  };
}

/** A link whose ups and downs a test brings about, and a Redis that answers when it is let. */
class Scene {
  readonly timers = new ManualTimers();
  readonly changes: string[] = [];
  readonly looks: { answer: () => void; fail: () => void }[] = [];
  /** Null: looks wait in `looks`. */
  doesAnswer: boolean | null = true;
  isSubscribed = true;
  readonly #ups = new Set<() => void>();
  readonly #downs = new Set<() => void>();
  readonly hearing: RedisHearing;

  constructor() {
    const link: HeardLink = {
      onUp: () => () => undefined,
      onDown: () => () => undefined,
      subscriber: { isUp: () => this.isSubscribed, onUp: adder(this.#ups), onDown: adder(this.#downs) },
    };
    this.hearing = new RedisHearing({
      link,
      look: () => this.#look(),
      clock: this.timers.clock,
      timers: this.timers,
      onChange: (now, before) => this.changes.push(`${before} to ${now}`),
    });
    onTestFinished(() => this.hearing.close());
  }

  lose(): void {
    this.isSubscribed = false;
    for (const listener of this.#downs) listener();
  }

  regain(): void {
    this.isSubscribed = true;
    for (const listener of this.#ups) listener();
  }

  #look(): Promise<void> {
    if (this.doesAnswer === true) return Promise.resolve();
    if (this.doesAnswer === false) return Promise.reject(new Error('no answer'));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.looks.push({ answer: resolve, fail: () => reject(new Error('no answer')) });
    return promise;
  }
}

async function whole(): Promise<Scene> {
  const scene = new Scene();
  await settle();
  expect(scene.changes.splice(0)).toEqual(['alone to hearing']);
  return scene;
}

describe('whether a process hears', () => {
  test('C8: a lost subscription is deafness at once where Redis answers', async () => {
    const scene = await whole();
    scene.lose();
    await settle();
    expect(scene.changes).toEqual(['hearing to deaf']);
    scene.regain();
    await settle();
    expect(scene.changes).toEqual(['hearing to deaf', 'deaf to hearing']);
  });

  test('C8: where Redis does not answer, it is alone, and looks four times a second', async () => {
    const scene = await whole();
    scene.doesAnswer = false;
    scene.lose();
    await settle();
    expect(scene.changes).toEqual(['hearing to alone']);
    scene.doesAnswer = true;
    scene.isSubscribed = true;
    await scene.timers.advance(250);
    expect(scene.changes).toEqual(['hearing to alone', 'alone to hearing']);
  });

  test('a subscription lost and regained while a look is under way makes it look again before it trusts', async () => {
    const scene = await whole();
    scene.doesAnswer = null;
    await scene.timers.advance(250);
    scene.lose();
    scene.regain();
    scene.looks[0]?.answer();
    await settle();
    expect(scene.changes).toEqual(['hearing to deaf']);
    expect(scene.looks).toHaveLength(2);
    scene.looks[1]?.answer();
    await settle();
    expect(scene.hearing.now).toBe('hearing');
  });

  test('a subscription that came while a look was under way is trusted after the next look only', async () => {
    const scene = await whole();
    scene.lose();
    await settle();
    scene.doesAnswer = null;
    await scene.timers.advance(250);
    scene.regain();
    scene.looks[0]?.answer();
    await settle();
    expect(scene.hearing.now).toBe('deaf');
    scene.looks[1]?.answer();
    await settle();
    expect(scene.hearing.now).toBe('hearing');
  });

  test('when Redis comes back, the subscription has a second to come back too', async () => {
    const scene = await whole();
    scene.doesAnswer = false;
    scene.lose();
    await settle();
    scene.doesAnswer = true;
    await scene.timers.advance(1000);
    expect(scene.hearing.now).toBe('alone');
    await scene.timers.advance(250);
    expect(scene.hearing.now).toBe('deaf');
  });

  test('a second begins anew where Redis went away in between', async () => {
    const scene = await whole();
    scene.doesAnswer = false;
    scene.lose();
    await settle();
    scene.doesAnswer = true;
    await scene.timers.advance(750);
    scene.doesAnswer = false;
    await scene.timers.advance(250);
    scene.doesAnswer = true;
    await scene.timers.advance(750);
    expect(scene.hearing.now).toBe('alone');
  });

  test('after it was closed it looks no more and tells nothing', async () => {
    const scene = await whole();
    scene.doesAnswer = null;
    await scene.timers.advance(250);
    scene.hearing.close();
    scene.looks[0]?.fail();
    await scene.timers.advance(1000);
    expect(scene.changes).toEqual([]);
    expect(scene.looks).toHaveLength(1);
  });
});
