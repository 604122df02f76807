/** The configuration in force, and all settings, as people see them; and what a running gateway takes over of a new one. */
import { z } from 'zod';
import { SETTINGS } from './config.ts';
import type { LoadedConfig, Origin, Resolved } from './load.ts';
import { type Setting, type Tree, treeOf } from './settings.ts';

interface EffectiveValue {
  /** As it would be written in the file. For a secret, only whether it is set. */
  readonly value: unknown;
  readonly origin: Origin;
  /** The environment variable, or the path and its file; null for a default. */
  readonly from: string | null;
}

export interface EffectiveConfig {
  readonly file: string;
  /** Sections as in the file; every setting is an EffectiveValue. */
  readonly settings: Tree;
}

/** The body of `GET /api/config`: no secret is in it. */
export function redactedConfig({ file, resolved }: Pick<LoadedConfig, 'file' | 'resolved'>): EffectiveConfig {
  const values = resolved.map((entry): [string, EffectiveValue] => [
    entry.setting.id,
    { value: shownValue(entry), origin: entry.origin, from: entry.name },
  ]);
  return { file, settings: treeOf(values) };
}

function shownValue({ setting, written }: Resolved): unknown {
  if (setting.secret) return written === null ? null : '(set, not shown)';
  const value: unknown = z.parse(setting.schema, written);
  // Durations and sizes are numbers inside; their unit is in what was written.
  const hasUnit = typeof value === 'number' && typeof written === 'string' && !/^\d+$/.test(written);
  return hasUnit ? written : value;
}

/** Where the value of the setting came from. */
export function originOf({ resolved }: LoadedConfig, id: string): Origin {
  return resolved.find(({ setting }) => setting.id === id)?.origin ?? 'default';
}

/** All other settings need a new process. */
const RELOADABLE = /^(?:cache\.classes\.|rateLimit\.|log\.)/;

interface Reloaded {
  /** In force from now on: the new values of reloadable settings, the old ones of the rest. */
  readonly inForce: LoadedConfig;
  /** The settings whose new values only a restart brings into force. */
  readonly needRestart: readonly string[];
}

/** `running` is the configuration in force so far, `read` the one read now. */
export function reload(running: LoadedConfig, read: LoadedConfig): Reloaded {
  const old = new Map(running.resolved.map((entry) => [entry.setting.id, entry]));
  const resolved = read.resolved.map((entry) =>
    RELOADABLE.test(entry.setting.id) ? entry : (old.get(entry.setting.id) ?? entry),
  );
  const { rateLimit, log } = read.config;
  const { classes, outdatedLimits } = read.config.cache;
  const config = { ...running.config, rateLimit, log, cache: { ...running.config.cache, classes, outdatedLimits } };
  const isOther = ({ setting, written }: Resolved): boolean =>
    JSON.stringify(old.get(setting.id)?.written) !== JSON.stringify(written);
  const needRestart = read.resolved
    .filter((entry) => !RELOADABLE.test(entry.setting.id) && isOther(entry))
    .map(({ setting }) => setting.id);
  return { inForce: { ...read, config, resolved }, needRestart };
}

const HEADINGS = ['In the file', 'Environment', 'Default', 'Allowed', 'What it does, and when to change it'];

/** The reference table of the documentation in Markdown: one row per setting, in the order of the file. */
export function describeConfig(): string {
  const rows = [HEADINGS, HEADINGS.map(() => '---'), ...SETTINGS.map(rowOf)];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function rowOf({ id, env, default: written, secret, allowed, description }: Setting): string[] {
  const names = [...(env === null ? [] : [env]), ...(secret ? [`${env}_FILE`] : [])];
  const hasNone = written === null || (Array.isArray(written) && written.length === 0);
  return [
    `\`${id}\``,
    names.map((name) => `\`${name}\``).join(', '),
    hasNone ? 'none' : `\`${String(written)}\``,
    allowed.replaceAll('|', String.raw`\|`),
    description,
  ];
}
