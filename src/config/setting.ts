/** How a setting is declared: its kind and, beside the schema, what there is to tell of it. */
import { z } from 'zod';
import { type Kind, optional } from './kinds.ts';

/** A value as it can stand in the YAML file. */
export type Written = string | number | null | readonly string[];

export interface SettingInfo {
  /** The environment variable that overrides the file; null where there is none. */
  readonly env: string | null;
  /** The default, as it would be written in the file. */
  readonly initial: Written;
  /** Never shown, and can be given in a file named by `<env>_FILE`. */
  readonly secret: boolean;
  readonly does: string;
  readonly allowed: string;
}

export const settingInfo = z.registry<SettingInfo>();

export const SECOND = 1000;
export const DAY = 86_400_000;

/** The schema of a setting that can be seen. */
export function setting<T>(kind: Kind<T>, about: Omit<SettingInfo, 'allowed' | 'secret'>): z.ZodType<T> {
  return kind.schema.register(settingInfo, { ...about, secret: false, allowed: kind.allowed });
}

/** A secret has no default. */
export function secret<T>(kind: Kind<T>, about: { env: string; does: string }): z.ZodType<T | null> {
  const { schema, allowed } = optional(kind);
  return schema.register(settingInfo, { ...about, initial: null, secret: true, allowed });
}
