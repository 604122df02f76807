import { createMemoryQuota } from '../../../src/quota/memory-quota.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeQuota } from './suite.ts';

describeQuota('memory', async (windows) => {
  const clock = new ManualClock();
  return {
    quota: createMemoryQuota({ clock, windows }),
    pass: async (micros) => clock.advanceMicros(micros),
    close: () => Promise.resolve(),
  };
});
