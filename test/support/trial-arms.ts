/** Both arms of a trial, as the admin listener shows them. */
export const TRIAL_ARM = {
  fresh: '1m',
  freshMs: 60_000,
  reads: 1234,
  hits: 1157,
  hitRatio: 0.9376,
  storeCalls: 77,
  storeFailures: 0,
  storeCallsPerRead: 0.0624,
  storeFailureRatio: 0,
};
export const CONTROL_ARM = {
  fresh: '30s',
  freshMs: 30_000,
  reads: 11_234,
  hits: 9886,
  hitRatio: 0.88,
  storeCalls: 1348,
  storeFailures: 3,
  storeCallsPerRead: 0.12,
  storeFailureRatio: 0.0022,
};
