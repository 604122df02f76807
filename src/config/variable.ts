/** One variable of the environment, or the file of a secret beside it. */
import { type ConfigFault, reasonOf, showGiven } from './errors.ts';
import type { GivenValue, ReadFile } from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const LINE_END = /\r?\n$/;

/** Without a line break at its end, which `$(cat file)` of some tools and manifests leave there. */
export function readVariable(name: string, env: Environment): GivenValue | null {
  const written = env[name]?.replace(LINE_END, '');
  return written === undefined || written === '' ? null : { written, name };
}

/** Reads a secret from `<name>` or from the file that `<name>_FILE` names; null if neither is set. */
export function readSecret(name: string, env: Environment, readFile: ReadFile): GivenValue | ConfigFault | null {
  const value = readVariable(name, env);
  const fileName = `${name}_FILE`;
  const path = env[fileName];
  if (path === undefined || path === '') return value;
  const fault = { name: fileName, given: showGiven(path, false) };
  if (value !== null) {
    return { ...fault, problem: `${name} is set too`, allowed: `only one of ${name} and ${fileName}` };
  }
  const allowed = `a file that holds the value of ${name} and nothing else`;
  try {
    const written = readFile(path).replace(LINE_END, '');
    return written === '' ? { ...fault, problem: 'the file is empty', allowed } : { written, name: fileName };
  } catch (error) {
    return { ...fault, problem: reasonOf(error), allowed };
  }
}
