import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { z } from 'zod';

const WORKER = fileURLToPath(new URL('../../support/memory-weight-worker.ts', import.meta.url));
const weightSchema = z.object({ weighedBytes: z.number(), heldBytes: z.number() });

/** The memory tier filled with evaluations in a process of its own, and what its heap holds of them. */
async function weigh(strengths: number): Promise<z.output<typeof weightSchema>> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', WORKER, String(strengths)]);
  return weightSchema.parse(JSON.parse(stdout));
}

test.each([
  ['short', 0],
  ['long', 60],
])(
  'the memory tier weighs %s evaluations at no less than the heap holds of them, and at most twice that',
  async (_, strengths) => {
    const { weighedBytes, heldBytes } = await weigh(strengths);
    expect(weighedBytes).toBeGreaterThanOrEqual(heldBytes);
    expect(weighedBytes).toBeLessThanOrEqual(2 * heldBytes);
  },
);
