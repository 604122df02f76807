/** How a setting is declared in the schema, and all settings of a schema as a flat list. */
import { z } from 'zod';
import { infoOf, optional, type ValueInfo } from './codecs.ts';
import type { ConfigFault } from './errors.ts';

/** Beside the schema of a setting, the words of its codec and the description that zod keeps. */
interface About {
  /** The environment variable that overrides the file; null if there is none. */
  readonly env: string | null;
  /** The default, as it would be written in the file. */
  readonly default: string | number | boolean | null | readonly string[];
  /** The path in the file, if it is another than that of the value without its unit. */
  readonly path?: string;
}

export interface Setting extends About, ValueInfo {
  /** Its path in the file, with dots: `cache.classes.list.fresh`. */
  readonly id: string;
  /** The path of its value in the configuration, which has the unit: `cache.classes.list.freshMs`. */
  readonly key: string;
  /** Never shown, and can be given in a file named by `<env>_FILE`. */
  readonly secret: boolean;
  /** Effect of the setting and when to change it, for the reference table. */
  readonly description: string;
  readonly schema: z.core.$ZodType;
}

const registry = z.registry<About & Pick<Setting, 'secret'>>();

/** A setting that can be shown; it still has to be described. Its name in the schema ends with the unit of its codec. */
export function setting<T>(value: z.ZodType<T>, about: About): z.ZodType<T> {
  return value.clone().register(registry, { ...about, secret: false });
}

/** A setting that is never shown, and has no default: without it, the value is `none`. */
export function secret<T, N>(value: z.ZodType<T>, none: N, about: Omit<About, 'default'>): z.ZodType<T | N> {
  return optional(value, none).register(registry, { ...about, default: null, secret: true });
}

/** A part of the configuration, frozen when it is made. */
export function section<S extends z.ZodRawShape>(shape: S): z.ZodReadonly<z.ZodObject<S>> {
  return z.object(shape).readonly();
}

/** The settings of a section and of those inside it. `key` is the path of the section; empty for the whole. */
export function settingsOf(schema: z.core.$ZodType, key = ''): readonly Setting[] {
  const inner = schema instanceof z.ZodReadonly ? schema.unwrap() : schema;
  if (inner instanceof z.ZodObject) {
    const members = Object.entries<z.core.$ZodType>(inner.shape);
    return members.flatMap(([name, member]) => settingsOf(member, key === '' ? name : `${key}.${name}`));
  }
  const about = registry.get(schema);
  const description = z.globalRegistry.get(schema)?.description;
  if (about === undefined || description === undefined) throw new Error(`the setting ${key} has no description`);
  const { allowed, unit = '' } = infoOf(schema);
  if (!key.endsWith(unit)) throw new Error(`the name of the setting ${key} has to end with ${unit}`);
  const id = about.path ?? key.slice(0, key.length - unit.length);
  return [{ ...about, allowed, description, id, key, schema }];
}

/** A value somebody wrote, and how messages name its place. */
export interface GivenValue {
  readonly written: unknown;
  readonly name: string;
}

/** The form that both layers of the configuration, file and environment, are read into. */
export interface Layer {
  /** By the setting's id. */
  readonly values: ReadonlyMap<string, GivenValue>;
  readonly faults: readonly ConfigFault[];
  /** Ids of settings whose value could not be read: they take part in no further check. */
  readonly unknown: ReadonlySet<string>;
}

/** A setting of an earlier release. With the value that is harmless it changes nothing; any other is refused. */
interface RemovedSetting {
  readonly id: string;
  readonly env: string;
  readonly harmless: string;
  /** The text after `allowed: `, which says what to do. */
  readonly instead: string;
}

export const REMOVED: readonly RemovedSetting[] = [
  {
    id: 'keys.source',
    env: 'KEYS_SOURCE',
    harmless: 'registry',
    instead: 'nothing; import the keys of the store with `evalgate keys import` (docs/migrating.md)',
  },
];

export const REMOVED_PROBLEM = 'this setting was removed';

/** Reads a text file; throws if it cannot. */
export type ReadFile = (path: string) => string;

export type Tree = Readonly<Record<string, unknown>>;

/** Builds a tree of sections from values by their paths with dots. */
export function treeOf(values: Iterable<readonly [path: string, value: unknown]>): Tree {
  const root: Record<string, unknown> = {};
  for (const [path, value] of values) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    let inner = root;
    for (const name of names) {
      const next = inner[name];
      inner = isTree(next) ? next : (inner[name] = {});
    }
    inner[last] = value;
  }
  return root;
}

export function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
