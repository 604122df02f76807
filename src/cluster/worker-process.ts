/** A worker as the first process sees it, and how one is made with node:cluster. */
import cluster from 'node:cluster';
import { readToPrimary, type ToPrimary, type ToWorker } from './messages.ts';

/** How a process ended: its exit status or the signal that ended it; neither where it could not be made. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface WorkerListener {
  onMessage(message: ToPrimary): void;
  /** Called once; nothing is heard afterwards. */
  onEnd(end: WorkerEnd): void;
}

export interface WorkerProcess {
  /** Never used again for another. */
  readonly id: number;
  /** Null where it could not be made. */
  readonly pid: number | null;
  /** To a worker that is gone it does nothing. */
  send(message: ToWorker): void;
  /** Ends it at once (SIGKILL). */
  kill(): void;
}

export type Fork = (listener: WorkerListener) => WorkerProcess;

export interface ForkOptions {
  /** The file that a worker runs. */
  readonly exec: string;
  readonly args: readonly string[];
}

/** A worker finds out that it is one by `joinSupervisor`. */
export function createFork({ exec, args }: ForkOptions): Fork {
  // All workers accept from one queue of the system's. Under Node's other policy the first process accepts and hands
  // connections on: one that was on its way to a worker as that was killed is answered by nobody, and never closed.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  // Metrics hold NaN, which JSON has no word for.
  cluster.setupPrimary({ exec, args: [...args], serialization: 'advanced' });
  return forkWorker;
}

function forkWorker(listener: WorkerListener): WorkerProcess {
  const worker = cluster.fork();
  let hasEnded = false;
  const end = (code: number | null, signal: string | null): void => {
    if (hasEnded) return;
    hasEnded = true;
    listener.onEnd({ code, signal });
  };
  worker.on('message', (received: unknown) => {
    const message = readToPrimary(received);
    if (message !== null && !hasEnded) listener.onMessage(message);
  });
  worker.on('exit', (code: number | null, signal: string | null) => end(code, signal));
  // A process that was never made has no exit; what could not be said to one that is going is told by its exit.
  worker.on('error', () => {
    if (worker.process.pid === undefined) end(null, null);
  });
  return {
    id: worker.id,
    pid: worker.process.pid ?? null,
    send: (message) => {
      if (worker.isConnected()) worker.process.send(message, () => undefined);
    },
    kill: () => void worker.process.kill('SIGKILL'),
  };
}
