/** Puts the layers together (defaults < file < environment) and checks the whole. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { z } from 'zod';
import { tlsFilesOf } from '../redis/address.ts';
import { problemOf } from './codecs.ts';
import { type Config, configSchema, SETTINGS } from './config.ts';
import { conflictsOf, warningsOf } from './cross-checks.ts';
import { environmentWarnings, isTracingOn, readEnvironment } from './environment.ts';
import { ConfigError, type ConfigFault, showGiven } from './errors.ts';
import { readFileLayer } from './file.ts';
import { configFileOf, SHIPPED_FILE } from './plain-file.ts';
import { type Layer, type ReadFile, type Setting, treeOf } from './settings.ts';
import type { Environment } from './variable.ts';

export type Origin = 'default' | 'file' | 'environment';

export interface Resolved {
  readonly setting: Setting;
  readonly origin: Origin;
  /** The environment variable, or the path and its file; null for a default. */
  readonly name: string | null;
  readonly written: unknown;
}

export interface LoadedConfig {
  readonly config: Config;
  readonly file: string;
  readonly resolved: readonly Resolved[];
  /** Values that are allowed but hardly meant, in whole sentences, for the log. */
  readonly warnings: readonly string[];
  /** Whether the variables of OpenTelemetry say so. The SDK reads the rest of them. */
  readonly isTraced: boolean;
  readonly files: KeptFiles;
}

/** The texts of the files that were read, by path. They hold secrets. */
export type KeptFiles = Readonly<Record<string, string>>;

/** Loads and checks the whole configuration. Throws ConfigError with all faults at once. */
export function loadConfig({ env, readFile = readText }: { env: Environment; readFile?: ReadFile }): LoadedConfig {
  const path = configFileOf(env);
  const isShipped = path === SHIPPED_FILE;
  const file = isShipped ? nameOfShipped() : path;
  const files: Record<string, string> = {};
  const read: ReadFile = (name) => (files[name] = readFile(name));
  const layers = { file: readFileLayer(path, file, read), environment: readEnvironment(env, read) };
  const resolved = SETTINGS.map((setting) => resolve(setting, layers, isShipped));
  const { config, faults } = check(resolved, layers);
  const all = [...layers.file.faults, ...layers.environment.faults, ...faults];
  if (all.length > 0) throw new ConfigError(all);
  keepTlsFiles(config, read);
  const warnings = [...warningsOf(config), ...environmentWarnings(env)];
  return { config, file, resolved, warnings, isTraced: isTracingOn(env), files };
}

/**
 * The address of the admin listener, whatever else is wrong with the configuration: for those who look for a gateway that
 * may run with an earlier one. A setting that cannot be read counts as not given.
 */
export function loadAdminAddress(env: Environment): Pick<Config['admin'], 'host' | 'port'> {
  const path = configFileOf(env);
  // No file of a secret is read for this.
  const layers = { file: readFileLayer(path, path, readText), environment: readEnvironment(env, () => '') };
  return check(
    SETTINGS.map((setting) => resolve(setting, layers, path === SHIPPED_FILE)),
    layers,
  ).config.admin;
}

export function readText(path: string): string {
  return readFileSync(path, 'utf8');
}

/** Reads the files that Redis addresses name. One that cannot be read is reported when it is used. */
function keepTlsFiles({ redis }: Config, read: ReadFile): void {
  for (const path of [redis.url, redis.cacheUrl].flatMap(tlsFilesOf)) {
    try {
      read(path);
    } catch {
      // Not kept.
    }
  }
}

/** Reads a file as it was kept; another one with `readFile`. */
export function keptOr(files: KeptFiles, readFile: ReadFile = readText): ReadFile {
  return (path) => files[path] ?? readFile(path);
}

/** Relative if the program runs in its own folder, so that messages can be followed. */
function nameOfShipped(): string {
  const fromHere = relative(process.cwd(), SHIPPED_FILE);
  return fromHere.startsWith('..') ? SHIPPED_FILE : fromHere;
}

interface Layers {
  readonly file: Layer;
  readonly environment: Layer;
}

/** The shipped file repeats every default: only a value that somebody changed there comes from the file. */
function resolve(setting: Setting, layers: Layers, isShipped: boolean): Resolved {
  const fromEnvironment = layers.environment.values.get(setting.id);
  if (fromEnvironment !== undefined) return { setting, origin: 'environment', ...fromEnvironment };
  const fromFile = layers.file.values.get(setting.id);
  const isDefault = isShipped && JSON.stringify(fromFile?.written) === JSON.stringify(setting.default);
  if (fromFile !== undefined && !isDefault) return { setting, origin: 'file', ...fromFile };
  return { setting, origin: 'default', name: null, written: setting.default };
}

/**
 * Checks each value by itself, then all together; a faulty value is replaced by its default, so that all faults show.
 * A conflict in which a faulty or unknown value takes part is not reported.
 */
function check(
  resolved: readonly Resolved[],
  { file, environment }: Layers,
): { readonly config: Config; readonly faults: readonly ConfigFault[] } {
  const faults = new Map<string, ConfigFault>();
  for (const entry of resolved) {
    const { setting, written } = entry;
    const { error } = z.safeParse(setting.schema, written);
    if (error !== undefined) faults.set(setting.id, faultOf(entry, problemOf(error), setting.allowed));
  }
  const isFaulty = ({ setting: { id } }: Resolved): boolean => faults.has(id);
  const config = configOf(resolved.map((one) => (isFaulty(one) ? { ...one, written: one.setting.default } : one)));
  const isUnsure = (id: string): boolean => faults.has(id) || file.unknown.has(id) || environment.unknown.has(id);
  const conflicts = conflictsOf(config)
    .filter(({ setting, others }) => ![setting, ...others].some(isUnsure))
    .flatMap(({ setting: blamed, problem, allowed }) =>
      resolved.filter(({ setting }) => setting.id === blamed).map((entry) => faultOf(entry, problem, allowed)),
    );
  return { config, faults: [...faults.values(), ...conflicts] };
}

function faultOf({ setting, name, origin, written }: Resolved, problem: string | null, allowed: string): ConfigFault {
  const shown = showGiven(written, setting.secret);
  const named = { name: name ?? setting.env ?? setting.id, allowed };
  if (origin !== 'default') return { ...named, given: shown, problem };
  // A default conflicts with what was given.
  return { ...named, given: null, problem: `by default ${shown}; ${problem}` };
}

/** The configuration of those values. Throws for one that is not allowed. */
export function configOf(resolved: readonly Resolved[]): Config {
  return configSchema.parse(treeOf(resolved.map(({ setting, written }) => [setting.key, written])));
}

/** For a worker: loads the configuration as it was, whatever has become of its files. Its siblings run with the same one. */
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
