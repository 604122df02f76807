/** How a setting is declared in the schema, and all settings of a schema as a flat list. */
import { z } from 'zod';
import { type Codec, optional } from './codecs.ts';

interface SettingInfo {
  /** The environment variable that overrides the file; null if there is none. */
  readonly env: string | null;
  /** The default, as it would be written in the file. */
  readonly default: string | number | null | readonly string[];
  /** Never shown, and can be given in a file named by `<env>_FILE`. */
  readonly secret: boolean;
  readonly allowed: string;
  /** Effect of the setting and when to change it, for the reference table. */
  readonly description: string;
}

export interface Setting extends SettingInfo {
  /** Its path in the file, with dots: `cache.classes.list.fresh`. */
  readonly id: string;
  /** The path of its value in the parsed schema, which has the unit: `cache.classes.list.freshMs`. */
  readonly key: string;
  readonly schema: z.core.$ZodType;
}

const registry = z.registry<SettingInfo & Pick<Codec<unknown>, 'unit'>>();

/** A setting that can be shown, once it is described. Its name in the schema ends with the unit of its codec. */
export function setting<T>(codec: Codec<T>, about: Pick<SettingInfo, 'env' | 'default'>): Undescribed<T> {
  const { schema, ...rest } = codec;
  return { describe: (description) => schema.register(registry, { ...rest, ...about, secret: false, description }) };
}

/** A setting that is never shown. It has no default. */
export function secret<T>(codec: Codec<T>, env: string): Undescribed<T | null> {
  const { schema, ...rest } = optional(codec);
  const about = { ...rest, env, default: null, secret: true };
  return { describe: (description) => schema.register(registry, { ...about, description }) };
}

interface Undescribed<T> {
  describe(description: string): z.ZodType<T>;
}

/** The settings of a section and of those inside it, in the order of the schema. */
export function settingsOf(
  section: z.ZodObject<Readonly<Record<string, z.core.$ZodType>>>,
  above = { id: '', key: '' },
): readonly Setting[] {
  return Object.entries(section.shape).flatMap(([name, schema]) => {
    const key = above.key + name;
    if (schema instanceof z.ZodObject) return settingsOf(schema, { id: `${above.id}${name}.`, key: `${key}.` });
    const info = registry.get(schema);
    if (info === undefined) throw new Error(`the setting ${key} has no description`);
    const { unit = '', ...rest } = info;
    if (!name.endsWith(unit)) throw new Error(`the name of the setting ${key} has to end with ${unit}`);
    return [{ ...rest, id: above.id + name.slice(0, name.length - unit.length), key, schema }];
  });
}

export type Tree = Readonly<Record<string, unknown>>;

/** Builds a tree of sections from values by their paths with dots. */
export function treeOf(values: Iterable<readonly [path: string, value: unknown]>): Tree {
  const root: Record<string, unknown> = {};
  for (const [path, value] of values) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    let section = root;
    for (const name of names) {
      const inner = section[name];
      section = isTree(inner) ? inner : (section[name] = {});
    }
    section[last] = value;
  }
  return root;
}

export function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
