/**
 * Loaded into a gateway's process before its own code (`node --import`): reports on descriptor 3 each time its event loop
 * was held longer than ever since it was last asked to forget (SIGUSR2), and sets its clock off if CLOCK_OFFSET_MS says so.
 * Such a line is `hold <milliseconds by the clock> <milliseconds of the thread's CPU>`. At SIGWINCH it collects all garbage,
 * and reports `census <timers> <bytes of the heap>`.
 */
import { writeSync } from 'node:fs';
import { queryObjects } from 'node:v8';

const LOOK_EVERY_MS = 10;
const REPORT_FD = 3;
const ORPHANED_WITHIN_MS = 500;

const offsetMs = Number(process.env['CLOCK_OFFSET_MS'] ?? '0');
if (offsetMs !== 0) {
  const now = Date.now.bind(Date);
  Date.now = () => now() + offsetMs;
  Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + offsetMs });
}

let lastMs = performance.now();
let lastCpuMs = cpuMs();
let longestMs = 0;
let longestCpuMs = 0;
const loop = setInterval(() => {
  const [nowMs, nowCpuMs] = [performance.now(), cpuMs()];
  const heldMs = nowMs - lastMs - LOOK_EVERY_MS;
  const heldCpuMs = Math.min(heldMs, nowCpuMs - lastCpuMs);
  [lastMs, lastCpuMs] = [nowMs, nowCpuMs];
  if (heldMs <= longestMs && heldCpuMs <= longestCpuMs) return;
  longestMs = Math.max(longestMs, heldMs);
  longestCpuMs = Math.max(longestCpuMs, heldCpuMs);
  writeSync(REPORT_FD, `hold ${longestMs.toFixed(1)} ${longestCpuMs.toFixed(1)}\n`);
}, LOOK_EVERY_MS).unref();

// Counted by their class: Node's own list has no timer that lets the process end. The count comes after a full collection.
process.on('SIGWINCH', () => {
  const timers = queryObjects(loop.constructor, { format: 'count' });
  writeSync(REPORT_FD, `census ${timers} ${process.memoryUsage().heapUsed}\n`);
});

// A test that is killed takes its gateways along.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) process.exit(1);
}, ORPHANED_WITHIN_MS).unref();

process.on('SIGUSR2', () => {
  longestMs = 0;
  longestCpuMs = 0;
});

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
