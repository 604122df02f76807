/**
 * A configuration that can be loaded again as it was, whatever has become of its files: a process that is started later
 * than its siblings must not run by another configuration than they do.
 */
import { readFileSync } from 'node:fs';
import type { Environment } from './environment.ts';
import { type LoadedConfig, loadConfig } from './load.ts';

/** The texts of the files that were read, by path. They hold secrets. */
export type KeptFiles = Readonly<Record<string, string>>;

export interface KeptConfig {
  readonly loaded: LoadedConfig;
  readonly files: KeptFiles;
}

/** Throws ConfigError with all faults at once. */
export function loadAndKeep(env: Environment): KeptConfig {
  const files: Record<string, string> = {};
  const loaded = loadConfig({
    env,
    readFile: (path) => {
      const text = readFileSync(path, 'utf8');
      files[path] = text;
      return text;
    },
  });
  return { loaded, files };
}

/** The same configuration, with the same environment. */
export function loadKept(env: Environment, files: KeptFiles): LoadedConfig {
  return loadConfig({
    env,
    readFile: (path) => {
      const text = files[path];
      if (text === undefined) throw new Error(`${path} was not read before`);
      return text;
    },
  });
}
