import { describe, expect, test } from 'vitest';
import { whenThere } from '../../src/maybe-promise.ts';

const failure = new Error('no');
const fail = (): never => {
  throw failure;
};

describe('a value that is there', () => {
  test('is gone on with at once', () => {
    const steps: string[] = [];
    const made = whenThere(20, (value) => {
      steps.push('next');
      return value + 1;
    });
    steps.push('after');
    expect(made).toBe(21);
    expect(steps).toEqual(['next', 'after']);
  });

  test('may be nothing', () => {
    const nothings = [undefined, null, false, 0, ''];
    expect(nothings.map((nothing) => whenThere(nothing, (value) => [value]))).toEqual(nothings.map((each) => [each]));
  });

  test('is waited for only in what comes next', async () => {
    const made = whenThere(20, async (value) => Promise.resolve(value + 1));
    expect(made).toBeInstanceOf(Promise);
    expect(await made).toBe(21);
  });

  test('throws what the next step throws', () => {
    expect(() => whenThere(20, fail)).toThrow(failure);
  });
});

describe('a promise', () => {
  test('is gone on with when it is kept', async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const steps: string[] = [];
    const made = whenThere(promise, (value) => {
      steps.push('next');
      return value + 1;
    });
    expect(made).toBeInstanceOf(Promise);
    resolve(20);
    steps.push('kept');
    expect(await made).toBe(21);
    expect(steps).toEqual(['kept', 'next']);
  });

  test('and one in what comes next are one', async () => {
    expect(await whenThere(Promise.resolve(20), async (value) => Promise.resolve(value + 1))).toBe(21);
  });

  test('rejects with what the next step throws', async () => {
    await expect(whenThere(Promise.resolve(20), fail)).rejects.toBe(failure);
  });

  test('that is broken rejects, and nothing comes next', async () => {
    let isNext = false;
    const made = whenThere(Promise.reject(failure), () => {
      isNext = true;
    });
    await expect(made).rejects.toBe(failure);
    expect(isNext).toBe(false);
  });
});
