import { ConfigError, type ConfigFault } from '../../../src/config/errors.ts';
import { type LoadedConfig, loadConfig } from '../../../src/config/load.ts';
import type { ReadFile } from '../../../src/config/layer.ts';

/** A file system of these files alone. */
export function filesOf(files: Readonly<Record<string, string>>): ReadFile {
  return (path) => {
    const text = files[path];
    if (text !== undefined) return text;
    throw Object.assign(new Error(`no ${path}`), { code: 'ENOENT' });
  };
}

/** Loads with a file `my.yaml` of that text and these variables. */
export function load(yaml: string, env: Readonly<Record<string, string>> = {}, files = {}): LoadedConfig {
  return loadConfig({ env: { CONFIG_FILE: 'my.yaml', ...env }, readFile: filesOf({ 'my.yaml': yaml, ...files }) });
}

/** The faults that loading reports. */
export function faultsOf(run: () => unknown): readonly ConfigFault[] {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}
