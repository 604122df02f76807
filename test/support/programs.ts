/** Programs that some tests and benchmarks use where they are there. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The program's path, from the first folder of the PATH that has it; null where none has. */
export function programOnPath(name: string): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
