import { ManualTimers } from '../../support/manual-timers.ts';
import { MemoryFleet } from '../../support/memory-fleet.ts';
import { leasesContract } from './cases.ts';

// The stand-in for a fleet that the unit tests of the cache use is held to what the real one does.
leasesContract(() => {
  const timers = new ManualTimers();
  const fleet = new MemoryFleet(timers);
  return { one: fleet.member(), two: fleet.member(), leaseMs: 2000, pass: (ms) => timers.advance(ms) };
});
