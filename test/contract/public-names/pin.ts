/** Holds what is public against the file that pins it. */
import { join } from 'node:path';
import { expect } from 'vitest';

/** Every pinned file begins with it. */
const HEADING = '# This is public: a change of any line below is a decision, and belongs into CHANGELOG.md.';

/** `vitest run test/contract/public-names -u` writes the file anew. */
export async function expectPinned(file: string, lines: readonly string[]): Promise<void> {
  const path = join(import.meta.dirname, 'pinned', file);
  await expect(`${[HEADING, '', ...lines].join('\n')}\n`).toMatchFileSnapshot(path);
}
