/** The sample upstream, for those who start it. */
export { createSampleData, type DemoIds, type SampleData } from './data.ts';
export {
  FAULT_OPTIONS,
  FaultOptionError,
  type Faults,
  MISBEHAVIOURS,
  type Misbehaviour,
  parseFaults,
} from './faults.ts';
export { type RecordTable, type SampleResource, StoreRecords } from './routes.ts';
export { type SampleCall, SampleUpstream } from './server.ts';
