/** The machine that a table was measured on. */
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

/** One line: cores, CPU, memory, Node, and how busy the machine was with anything else before. */
export function describeMachine(): string {
  const cores = availableParallelism();
  return [
    `${cores} ${cores === 1 ? 'core' : 'cores'} (${cpus()[0]?.model.trim() ?? 'unknown CPU'})`,
    `${Math.round(totalmem() / 2 ** 30)} GB of memory`,
    `Node.js ${process.versions.node}`,
    `load ${loadavg()[0]?.toFixed(1)} at the start`,
  ].join(', ');
}
