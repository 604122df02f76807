/** The sample upstream, for those who start it. */
export { createSampleData } from './data.ts';
export type { SampleData } from './data.ts';
export { demo } from './demo.ts';
export type { DemoIds } from './demo.ts';
export { FAULT_OPTIONS, FaultOptionError, NO_FAULTS, parseFaults } from './faults.ts';
export type { Faults } from './faults.ts';
export { createSampleUpstream } from './server.ts';
export type { SampleCallLog, SampleUpstream, SampleUpstreamOptions } from './server.ts';
export { INTERNAL_MARKER, INTERNAL_MEMBERS } from './traps.ts';
