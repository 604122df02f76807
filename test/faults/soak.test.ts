import { expect, test } from 'vitest';
import { run } from '../prove/rows/soak.ts';

test('some seconds of everything at once: no failed request that no fault explains, no secret anywhere', async () => {
  for (const row of await run('short')) expect(row).toMatchObject({ ok: true });
}, 120_000);
