/** The sample upstream, for those who start it. */
export { createSampleData, type DemoIds, type SampleData } from './data.ts';
export { FAULT_OPTIONS, FaultOptionError, type Faults, parseFaults } from './faults.ts';
export { MISBEHAVIOURS, type Misbehaviour } from './misbehave.ts';
export { createRecords, type RecordTable } from './records.ts';
export type { SampleResource } from './routes.ts';
export { createSampleUpstream, type SampleCall, type SampleUpstream } from './server.ts';
