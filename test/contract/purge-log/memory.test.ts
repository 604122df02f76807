import { MemoryPurgeLog } from '../../../src/cache/purge-log.ts';
import { purgeLogContract } from './cases.ts';

purgeLogContract(() => {
  const log = new MemoryPurgeLog();
  return { one: log, two: log, heard: () => Promise.resolve() };
});
