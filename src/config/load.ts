/** Puts the layers together (defaults < file < environment) and checks the whole. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type Config, configOf } from './config.ts';
import { conflictsOf, warningsOf } from './cross-checks.ts';
import { type Environment, environmentWarnings, readEnvironment } from './environment.ts';
import { ConfigError, type ConfigFault, showGiven } from './errors.ts';
import { readFileLayer } from './file.ts';
import type { GivenValue, Layer, ReadFile } from './layer.ts';
import { configSchema, type Settings } from './schema.ts';
import { listSettings, type Setting, treeOf } from './settings.ts';
import { readTracing, type TracingSettings } from './tracing.ts';

export type Origin = 'default' | 'file' | 'environment';

/** A setting's value and where it came from. */
export interface Resolved {
  readonly setting: Setting;
  readonly origin: Origin;
  /** The environment variable, or the path and its file; null for a default. */
  readonly name: string | null;
  readonly written: unknown;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The file that was read. */
  readonly file: string;
  readonly resolved: readonly Resolved[];
  /** What is allowed but hardly meant, in whole sentences, for the log. */
  readonly warnings: readonly string[];
  /** By the variables of OpenTelemetry; null where it is off. */
  readonly tracing: TracingSettings | null;
}

export interface ConfigSources {
  readonly env: Environment;
  /** Reads a text file; throws where it cannot. The real file system by default. */
  readonly readFile?: ReadFile;
}

/** The file that comes with the program and is read where `CONFIG_FILE` names no other. */
const SHIPPED_FILE = fileURLToPath(new URL('../../config/default.yaml', import.meta.url));

/** Loads and checks the whole configuration. Throws ConfigError with all faults at once. */
export function loadConfig({ env, readFile = readText }: ConfigSources): LoadedConfig {
  const own = env['CONFIG_FILE'];
  const path = own === undefined || own === '' ? SHIPPED_FILE : own;
  const file = path === SHIPPED_FILE ? nameOfShipped() : path;
  const layers = { file: readFileLayer(path, file, readFile), environment: readEnvironment(env, readFile) };
  const resolved = listSettings().map((setting) => resolve(setting, layers, path === SHIPPED_FILE));
  const unknown = new Set([...layers.file.unknown, ...layers.environment.unknown]);
  const { settings, faults } = check(resolved, unknown);
  const tracing = readTracing(env, readFile);
  const all = [...layers.file.faults, ...layers.environment.faults, ...faults, ...tracing.faults];
  if (all.length > 0) throw new ConfigError(all);
  const warnings = [...warningsOf(settings), ...environmentWarnings(env, { isDemo: settings.upstream.url === null })];
  return { config: configOf(settings), file, resolved, warnings, tracing: tracing.settings };
}

/** Relative where the program is run in its own folder, so that messages can be followed. */
function nameOfShipped(): string {
  const fromHere = relative(process.cwd(), SHIPPED_FILE);
  return fromHere.startsWith('..') ? SHIPPED_FILE : fromHere;
}

function readText(path: string): string {
  return readFileSync(path, 'utf8');
}

function resolve(setting: Setting, layers: { file: Layer; environment: Layer }, isShipped: boolean): Resolved {
  const fromEnvironment = layers.environment.values.get(setting.id);
  if (fromEnvironment !== undefined) return { setting, origin: 'environment', ...fromEnvironment };
  const fromFile = layers.file.values.get(setting.id);
  if (fromFile !== undefined && !(isShipped && isDefault(setting, fromFile))) {
    return { setting, origin: 'file', ...fromFile };
  }
  return { setting, origin: 'default', name: null, written: setting.initial };
}

/** The shipped file repeats every default: only what somebody changed there comes from the file. */
function isDefault({ initial }: Setting, { written }: GivenValue): boolean {
  return JSON.stringify(written) === JSON.stringify(initial);
}

/**
 * Checks each value alone, then all together; a faulty value stands back for its default, so that all faults show.
 * Where a value is faulty or unknown, nothing is said about how it goes with others.
 */
function check(
  resolved: readonly Resolved[],
  unknown: ReadonlySet<string>,
): { settings: Settings; faults: readonly ConfigFault[] } {
  const faults = new Map<string, ConfigFault>();
  for (const entry of resolved) {
    const fault = faultOf(entry);
    if (fault !== null) faults.set(entry.setting.id, fault);
  }
  const settings = configSchema.parse(
    treeOf(resolved.map(({ setting, written }) => [setting.path, faults.has(setting.id) ? setting.initial : written])),
  );
  const conflicts = conflictsOf(settings)
    .filter(({ setting, others }) => ![setting, ...others].some((id) => faults.has(id) || unknown.has(id)))
    .map(({ setting, problem, allowed }) => ({ ...naming(setting, resolved), problem, allowed }));
  return { settings, faults: [...faults.values(), ...conflicts] };
}

function faultOf({ setting, name, written }: Resolved): ConfigFault | null {
  const result = z.safeParse(setting.schema, written);
  if (result.success) return null;
  return {
    name: name ?? setting.id,
    given: showGiven(written, setting.secret),
    problem: problemOf(result.error.issues),
    allowed: setting.allowed,
  };
}

function problemOf(issues: readonly z.core.$ZodIssue[]): string | null {
  for (const issue of issues) {
    if (issue.code === 'custom' && typeof issue.params?.['problem'] === 'string') return issue.params['problem'];
  }
  return null;
}

function naming(id: string, resolved: readonly Resolved[]): Pick<ConfigFault, 'name' | 'given'> {
  const entry = resolved.find(({ setting }) => setting.id === id);
  if (entry === undefined) return { name: id, given: null };
  return { name: entry.name ?? entry.setting.env ?? id, given: showGiven(entry.written, entry.setting.secret) };
}
