import { expect, test, vi } from 'vitest';
import { Derivation, Entry } from '../../../src/cache/entry.ts';

const entryOf = (text: string): Entry<string> =>
  new Entry({ kind: 'found', record: text, etag: '"1"', bytes: text.length }, 1000);

test('what is derived from an entry is made once and weighed once', () => {
  const entry = entryOf('text');
  const make = vi.fn<() => Buffer>(() => Buffer.from('rendered'));
  const forms = new Derivation<Buffer>((bytes) => bytes.length);
  const first = forms.of(entry, make);
  expect(forms.of(entry, make)).toBe(first);
  expect(make).toHaveBeenCalledTimes(1);
  expect(entry.derivedBytes).toBe(8);
});

test('a renewed entry is younger and keeps the record and what was derived from it', () => {
  const entry = entryOf('text');
  const forms = new Derivation<Buffer>((bytes) => bytes.length);
  const rendered = forms.of(entry, () => Buffer.from('rendered'));
  const renewed = entry.renewedAt(2000);
  expect(renewed.filledAtMs).toBe(2000);
  expect(entry.filledAtMs).toBe(1000);
  expect(renewed.answer).toBe(entry.answer);
  expect(renewed.derivedBytes).toBe(8);
  expect(forms.of(renewed, () => Buffer.from('other'))).toBe(rendered);
});

test('whoever keeps an entry hears how it grows, until it stops listening', () => {
  const entry = entryOf('text');
  const heard: number[] = [];
  const stop = entry.onGrowth((bytes) => heard.push(bytes));
  entry.renewedAt(2000).addDerivedBytes(7);
  stop();
  entry.addDerivedBytes(9);
  expect(heard).toEqual([7]);
  expect(entry.derivedBytes).toBe(16);
});
