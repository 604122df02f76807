/** The schema as a flat list of settings, and how to reach one in a tree of values. */
import { z } from 'zod';
import { configSchema } from './schema.ts';
import { settingInfo, type SettingInfo } from './setting.ts';

export interface Setting extends SettingInfo {
  /** Where it stands in the file, from the outside in. */
  readonly path: readonly string[];
  /** The same with dots: `cache.classes.list.fresh`. */
  readonly id: string;
  readonly schema: z.core.$ZodType;
}

/** A part of the schema that holds settings or further sections. */
export type Section = z.ZodObject<Readonly<Record<string, z.core.$ZodType>>>;

export function isSection(schema: z.core.$ZodType): schema is Section {
  return schema instanceof z.ZodObject;
}

export type Tree = Readonly<Record<string, unknown>>;

/** All settings in the order of the schema. */
export function listSettings(): readonly Setting[] {
  return settingsOf(configSchema, []);
}

function settingsOf(section: Section, path: readonly string[]): Setting[] {
  return Object.entries(section.shape).flatMap(([name, schema]) => {
    const here = [...path, name];
    if (isSection(schema)) return settingsOf(schema, here);
    const info = settingInfo.get(schema);
    if (info === undefined) throw new Error(`the setting ${here.join('.')} has no description`);
    return [{ ...info, path: here, id: here.join('.'), schema }];
  });
}

/** Builds a tree of sections from values by path. */
export function treeOf(values: Iterable<readonly [path: readonly string[], value: unknown]>): Tree {
  const root: Record<string, unknown> = {};
  for (const [path, value] of values) {
    let section = root;
    for (const name of path.slice(0, -1)) {
      const inner = section[name];
      section = isTree(inner) ? inner : (section[name] = {});
    }
    const last = path.at(-1);
    if (last !== undefined) section[last] = value;
  }
  return root;
}

export function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
