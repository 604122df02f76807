export { programOnPath } from './process.ts';
