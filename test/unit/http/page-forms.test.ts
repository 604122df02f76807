import { expect, test } from 'vitest';
import { Entry } from '../../../src/cache/entry.ts';
import { PageForms } from '../../../src/http/page-forms.ts';
import { Representation } from '../../../src/http/representation.ts';

function anEntry(): Entry<object> {
  return new Entry<object>({ kind: 'found', record: {}, etag: null, bytes: 2 }, 0);
}

function formOf(text: string): Representation {
  return new Representation({ text });
}

test('a page is made once for its entry, and anew for another', async () => {
  const forms = new PageForms();
  const entry = anEntry();
  let made = 0;
  const make = async (): Promise<Representation> => {
    made += 1;
    return formOf('page');
  };
  const first = await forms.of(entry, '1', make);
  expect(await forms.of(entry, '1', make)).toBe(first);
  // The same answer, confirmed by the store.
  expect(await forms.of(entry.renewedAt(5), '1', make)).toBe(first);
  expect(made).toBe(1);
  await forms.of(entry, '2', make);
  await forms.of(anEntry(), '1', make);
  expect(made).toBe(3);
});

test('the entry weighs the pages that are kept, and no others', async () => {
  const forms = new PageForms();
  const entry = anEntry();
  const pages = Array.from({ length: 20 }, (_, page) => formOf('x'.repeat(100 + page)));
  for (const [page, form] of pages.entries()) await forms.of(entry, String(page), async () => form);
  const kept = pages.slice(-8).reduce((sum, { weightBytes }) => sum + weightBytes, 0);
  expect(entry.derivedBytes).toBe(kept);
});

test('a page that two readers wait for at a time is weighed once', async () => {
  const forms = new PageForms();
  const entry = anEntry();
  await Promise.all([1, 2].map(async () => await forms.of(entry, '1', async () => formOf('page'))));
  expect(entry.derivedBytes).toBe(formOf('page').weightBytes);
});
