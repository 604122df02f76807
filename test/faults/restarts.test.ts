import { expect, test } from 'vitest';
import { run } from '../prove/rows/restarts.ts';

test('restarts in turn lose no request, and a crash of a worker only what it was at', async () => {
  for (const row of await run('short')) expect(row).toMatchObject({ ok: true });
}, 120_000);
