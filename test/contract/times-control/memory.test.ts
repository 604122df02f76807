import { AdjustableTimes } from '../../../src/cache/times.ts';
import { LocalTimesControl } from '../../../src/cache/times-control.ts';
import { timesControlContract } from './cases.ts';

timesControlContract(() => {
  const times = new AdjustableTimes();
  return { times, control: new LocalTimesControl(times) };
});
