export type { Bar as Row } from './bar.ts';
