/**
 * The wall clock of one process, set forward or back while it runs: libfaketime, through its documented variables. Clocks that
 * are never set back (those of timers) go on as they are.
 *
 *     const clock = await SteppedClock.make(folder, 'a');
 *     spawn(...clock.through, 'node', ...)
 *     await clock.set(-90);
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { programOnPath } from './process.ts';

/** How often a process looks whether its clock was set. */
const LOOK_EVERY_SECONDS = 1;
const LIBRARY = ['-f', '+0', 'printenv', 'LD_PRELOAD'];

export class SteppedClock {
  /** The prefix of a command that is to run by it. */
  readonly through: readonly string[];
  readonly #file: string;

  private constructor(library: string, file: string) {
    this.#file = file;
    this.through = [
      'env',
      `LD_PRELOAD=${library}`,
      `FAKETIME_TIMESTAMP_FILE=${file}`,
      `FAKETIME_CACHE_DURATION=${LOOK_EVERY_SECONDS}`,
      'FAKETIME_DONT_FAKE_MONOTONIC=1',
    ];
  }

  /** Why no clock can be set here; null if it can. */
  static trouble(): string | null {
    return programOnPath('faketime') === null ? 'there is no faketime (package faketime)' : null;
  }

  /** Keeps its offset in a file of that name in the folder. */
  static async make(folder: string, name: string): Promise<SteppedClock> {
    const { stdout } = await promisify(execFile)('faketime', LIBRARY);
    const clock = new SteppedClock(stdout.trim(), join(folder, `clock-${name}`));
    await clock.set(0);
    return clock;
  }

  /** How far it is ahead of the machine's clock. In force within a second. */
  async set(aheadSeconds: number): Promise<void> {
    await writeFile(this.#file, `${aheadSeconds < 0 ? '' : '+'}${aheadSeconds}\n`);
  }
}
