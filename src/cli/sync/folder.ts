/**
 * The folder of a copy, which one program at a time writes to. Each leaves a file named by its process id there, and then looks
 * for those of others: so of two that begin at once, both may be refused, but never both go on. The file of a program that was
 * killed is cleared away, since no process has its id any more. A program on another machine is not noticed.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, systemCode } from '../../log/error.ts';
import { CliError } from '../command.ts';

const NAME = /^running-(\d+)$/;

/**
 * Does the work in the folder, which is made if there is none, and keeps others from it meanwhile. Rejects as the work does, and
 * with a CliError if another program works there, or the system refuses a file.
 */
export async function workIn<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    const unlock = lock(folder);
    try {
      return await work();
    } finally {
      unlock();
    }
  } catch (error) {
    if (systemCode(error) === null) throw error;
    throw new CliError(`${folder}: ${messageOf(error)}. Give a folder that this user may write to, and that has room.`);
  }
}

/** Returns what frees the folder again. */
function lock(folder: string): () => void {
  mkdirSync(folder, { recursive: true });
  const own = join(folder, `running-${process.pid}`);
  const unlock = (): void => rmSync(own, { force: true });
  writeFileSync(own, '');
  for (const name of readdirSync(folder)) {
    const pid = Number(NAME.exec(name)?.[1] ?? process.pid);
    if (pid === process.pid) continue;
    const path = join(folder, name);
    if (isRunning(pid)) {
      unlock();
      throw new CliError(
        `Process ${pid} works on ${folder}, and only one at a time can. End it, or wait for it. If it is no sync, delete ${path}.`,
      );
    }
    rmSync(path, { force: true });
  }
  return unlock;
}

/** One that belongs to another user runs as well. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCode(error) === 'EPERM';
  }
}
