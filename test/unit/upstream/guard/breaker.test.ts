import { expect, test } from 'vitest';
import { Breaker, type Pass, type Turn, type Verdict } from '../../../../src/upstream/guard/breaker.ts';

/** A breaker and a time that stands still until it is moved. */
function openRig(percent: number | null = 50) {
  const breaker = new Breaker(percent);
  let nowMs = 0;
  const admit = (): Pass => {
    const pass = breaker.admit(nowMs);
    if (pass === null) throw new Error('the call was held back');
    return pass;
  };
  const settle = (pass: Pass, verdict: Verdict, retryAfterMs: number | null = null): Turn | null =>
    breaker.settle(pass, verdict, nowMs, retryAfterMs);
  /** One call, at once. */
  const call = (verdict: Verdict): Turn | null => {
    const pass = admit();
    breaker.begin(pass, nowMs);
    return settle(pass, verdict);
  };
  const probe = (): Pass => {
    const pass = admit();
    expect(breaker.begin(pass, nowMs)).toBe(true);
    return pass;
  };
  return {
    breaker,
    call,
    settle,
    admit,
    probe,
    isHeldBack: () => breaker.admit(nowMs) === null,
    begin: (pass: Pass) => breaker.begin(pass, nowMs),
    probeInMs: () => breaker.probeInMs(nowMs),
    wait: (ms: number) => {
      nowMs += ms;
    },
    open: () => {
      for (let calls = 0; calls < 10; calls += 1) call('bad');
      expect(breaker.isOpen).toBe(true);
    },
  };
}

test('ten calls that all fail open it, nine do not', () => {
  const { breaker, call } = openRig();
  expect(Array.from({ length: 9 }, () => call('bad'))).toEqual(Array.from({ length: 9 }, () => null));
  expect(breaker.isOpen).toBe(false);
  expect(call('bad')).toBe('opened');
  expect(breaker.isOpen).toBe(true);
});

test('half of the calls may fail for as long as they like, and one more opens it', () => {
  const { breaker, call } = openRig();
  for (let calls = 0; calls < 200; calls += 1) call(calls % 2 === 0 ? 'good' : 'bad');
  expect(breaker.isOpen).toBe(false);
  expect(call('bad')).toBe('opened');
});

test('after many good calls 41 of the last 80 have to fail', () => {
  const { call } = openRig();
  for (let calls = 0; calls < 500; calls += 1) call('good');
  const turns = Array.from({ length: 41 }, () => call('bad'));
  expect(turns.slice(0, 40)).toEqual(Array.from({ length: 40 }, () => null));
  expect(turns[40]).toBe('opened');
});

test('what is more than 10 s ago counts no more, good or bad', () => {
  const { breaker, call, wait } = openRig();
  for (let calls = 0; calls < 79; calls += 1) call('good');
  for (let calls = 0; calls < 9; calls += 1) call('bad');
  wait(10_000);
  for (let calls = 0; calls < 9; calls += 1) call('bad');
  expect(breaker.isOpen).toBe(false);
  expect(call('bad')).toBe('opened');
});

test('calls that were abandoned or never sent say nothing', () => {
  const { breaker, call } = openRig();
  for (let calls = 0; calls < 100; calls += 1) call('none');
  for (let calls = 0; calls < 9; calls += 1) call('bad');
  expect(breaker.isOpen).toBe(false);
});

test('with null it never opens', () => {
  const { breaker, call } = openRig(null);
  for (let calls = 0; calls < 1000; calls += 1) call('bad');
  expect(breaker.isOpen).toBe(false);
});

test('with 100 only calls that all fail open it', () => {
  const { breaker, call, wait } = openRig(100);
  call('good');
  for (let calls = 0; calls < 60; calls += 1) call('bad');
  expect(breaker.isOpen).toBe(false);
  wait(10_000);
  for (let calls = 0; calls < 10; calls += 1) call('bad');
  expect(breaker.isOpen).toBe(true);
});

test('open, it lets one probe a second through, and one at a time', () => {
  const { open, isHeldBack, probe, settle, wait, probeInMs } = openRig();
  open();
  expect([isHeldBack(), probeInMs()]).toEqual([true, 1000]);
  wait(999);
  expect(isHeldBack()).toBe(true);
  wait(1);
  const first = probe();
  expect(first.isProbe).toBe(true);
  expect(isHeldBack()).toBe(true);
  wait(1500);
  expect(isHeldBack()).toBe(true);
  settle(first, 'bad');
  const second = probe();
  settle(second, 'bad');
  expect(isHeldBack()).toBe(true);
  wait(999);
  expect(isHeldBack()).toBe(true);
  wait(1);
  probe();
});

test('a probe that succeeds closes it, and what failed before is forgotten', () => {
  const { breaker, open, probe, settle, wait, call } = openRig();
  open();
  wait(1000);
  expect(settle(probe(), 'good')).toBe('closed');
  for (let calls = 0; calls < 9; calls += 1) call('bad');
  expect(breaker.isOpen).toBe(false);
});

test('a probe that was abandoned, or never sent, makes room for the next and closes nothing', () => {
  const { breaker, open, probe, settle, wait, admit, isHeldBack } = openRig();
  open();
  wait(1000);
  const unsent = admit();
  expect(settle(unsent, 'none')).toBeNull();
  const sent = probe();
  expect(settle(sent, 'none')).toBeNull();
  expect([breaker.isOpen, isHeldBack()]).toEqual([true, true]);
  wait(1000);
  probe();
});

test('a probe without an answer for 3 s is taken for lost; where it succeeds after all, that is good news too', () => {
  const { breaker, open, probe, settle, wait, isHeldBack } = openRig();
  open();
  wait(1000);
  const lost = probe();
  wait(2999);
  expect(isHeldBack()).toBe(true);
  wait(1);
  const next = probe();
  expect(settle(lost, 'good')).toBe('closed');
  expect(settle(next, 'bad')).toBeNull();
  expect(breaker.isOpen).toBe(false);
});

test('a probe that was taken for lost before it was sent is not sent any more', () => {
  const { open, admit, begin, wait } = openRig();
  open();
  wait(1000);
  const slow = admit();
  wait(3000);
  const next = admit();
  expect([begin(slow), begin(next)]).toEqual([false, true]);
});

test('calls that were admitted before it opened are not sent after', () => {
  const { open, admit, begin } = openRig();
  const before = admit();
  open();
  expect(begin(before)).toBe(false);
});

test('how calls end that were sent before the last turn changes nothing', () => {
  const { breaker, open, probe, settle, admit, wait } = openRig();
  const good = admit();
  const bad = Array.from({ length: 19 }, () => admit());
  open();
  expect(settle(good, 'good')).toBeNull();
  expect(breaker.isOpen).toBe(true);
  wait(1000);
  settle(probe(), 'good');
  expect(bad.map((pass) => settle(pass, 'bad'))).toEqual(Array.from({ length: 19 }, () => null));
  expect(breaker.isOpen).toBe(false);
});

test.each([
  [2000, 2000],
  [500, 1000],
  [60_000, 4000],
])('a probe that is answered with Retry-After of %d ms delays the next one to %d ms', (retryAfterMs, delayMs) => {
  const { open, probe, settle, wait, probeInMs } = openRig();
  open();
  wait(1000);
  settle(probe(), 'bad', retryAfterMs);
  expect(probeInMs()).toBe(delayMs);
});
