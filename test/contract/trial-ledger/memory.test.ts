import { LocalTimesControl } from '../../../src/cache/times-control.ts';
import { AdjustableTimes } from '../../../src/cache/times.ts';
import { TrialsHere } from '../../../src/cache/trial/here.ts';
import { LocalTrialLedger } from '../../../src/cache/trial/ledger.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { trialLedgerContract } from './cases.ts';

trialLedgerContract(async () => {
  const times = new AdjustableTimes();
  const here = new TrialsHere({ times, clock: new ManualClock() });
  const ledger = new LocalTrialLedger(here, new LocalTimesControl(times));
  return { ledger, beside: ledger, here, times, heard: async () => {} };
});
