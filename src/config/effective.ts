/** The configuration in force, for people: every value in the file's own words, with where it came from. */
import { z } from 'zod';
import type { LoadedConfig, Origin, Resolved } from './load.ts';
import { type Tree, treeOf } from './settings.ts';

export interface EffectiveValue {
  /** As it would be written in the file. Of a secret only whether it is set. */
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

/** What `GET /api/config` shows: no secret is in it. */
export function redactedConfig({ file, resolved }: Pick<LoadedConfig, 'file' | 'resolved'>): EffectiveConfig {
  return { file, settings: treeOf(resolved.map((entry) => [entry.setting.path, effectiveValue(entry)])) };
}

function effectiveValue(entry: Resolved): EffectiveValue {
  return { value: shownValue(entry), origin: entry.origin, from: entry.name };
}

function shownValue({ setting, written }: Resolved): unknown {
  if (setting.secret) return written === null ? null : '(set, not shown)';
  const value: unknown = z.parse(setting.schema, written);
  // Durations and sizes are numbers inside; their unit is in what was written.
  const hasUnit = typeof value === 'number' && typeof written === 'string' && !/^\d+$/.test(written);
  return hasUnit ? written : value;
}
