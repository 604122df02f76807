import { expect, test } from 'vitest';
import { createLogger } from '../../src/log/logger.ts';
import { warnOfOtherStores } from '../../src/redis-warnings.ts';
import { ManualTimers } from '../support/manual-timers.ts';

const about = { host: 'a', version: '1', startedAtMs: 0, status: 'ready' } as const;
const own = { ...about, id: '1', pid: 1, store: 'here' };
const other = { ...about, id: '2', pid: 2, store: 'elsewhere' };

test.each([
  ['of the same store', [own, { ...own, id: '3' }], 0],
  ['of another store', [own, other], 1],
] as const)('gateways over one Redis, %s', async (_, members, warnings) => {
  const timers = new ManualTimers();
  const lines: string[] = [];
  const logger = createLogger({
    level: 'info',
    destination: { write: (line) => void lines.push(line) },
  });
  warnOfOtherStores({ members: { list: () => members }, store: 'here', logger, timers });
  await timers.advance(60_000);
  expect(lines).toHaveLength(warnings);
  for (const line of lines) {
    expect(line).toContain('"others":[{"host":"a","pid":2}]');
    expect(line).toContain('in front of another store');
  }
});
