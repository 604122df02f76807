/** The findings of `evalgate doctor` about Redis, for the tests of each kind of Redis. */
import { expect } from 'vitest';
import { z } from 'zod';
import { runCli } from '../support/cli.ts';

const reportSchema = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({ name: z.string(), status: z.string(), message: z.string(), advice: z.string().nullable() }),
  ),
});

/** Its verdict, its findings about Redis and the clock, and a line of each without figures of time. No gateway runs. */
export async function findRedis(env: Readonly<Record<string, string>>) {
  const args = ['doctor', '--json', '--admin', 'http://127.0.0.1:1'];
  const { status, stdout, stderr } = await runCli(args, { env });
  const { ok, checks } = reportSchema.parse(JSON.parse(stdout));
  expect([status, stderr]).toEqual([ok ? 0 : 1, '']);
  const found = checks.filter(({ name }) => name === 'redis' || name === 'clock');
  return {
    ok,
    found,
    lines: found.map(
      ({ name, status: verdict, message }) => `${verdict} ${name} ${message.replace(/\d+(\.\d+)? ms/, 'N ms')}`,
    ),
  };
}
