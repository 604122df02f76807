/** The configuration in force as people see it, and what a running gateway takes over of a new one. */
import { z } from 'zod';
import { isSameRedis } from '../redis/address.ts';
import type { Config } from './config.ts';
import { configOf, type LoadedConfig, type Origin, type Resolved } from './load.ts';
import { type Tree, treeOf } from './settings.ts';

/** The body of `GET /api/config`: sections as in the file, where every setting has its value and origin. No secret is in it. */
export function redactedConfig({ file, resolved }: LoadedConfig): { readonly file: string; readonly settings: Tree } {
  const values = resolved.map((entry) => {
    const { setting, origin, name } = entry;
    return [setting.id, { value: shownValue(entry), origin, from: name }] as const;
  });
  return { file, settings: treeOf(values) };
}

/** As it would be written in the file. For a secret, only whether it is set. */
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

/** All other settings need a new process, except Redis addresses: `canChange`. */
const RELOADABLE =
  /^(?:cache\.classes\.|rateLimit\.|log\.|(?:admin\.token|upstream\.token|cache\.encryptionKeys|changes\.secret)$)/;
const REDIS_ADDRESSES: readonly string[] = ['redis.url', 'redis.cacheUrl'];

function canChange(id: string, from: unknown, to: unknown): boolean {
  if (!REDIS_ADDRESSES.includes(id)) return RELOADABLE.test(id);
  return typeof from === 'string' && typeof to === 'string' && isSameRedis(from, to);
}

/**
 * `running` is the configuration in force so far, `read` the one read now. Returns the one in force from now on, and the
 * settings whose new values only a restart brings into force.
 */
export function reload(
  running: LoadedConfig,
  read: LoadedConfig,
): { readonly inForce: LoadedConfig; readonly needRestart: readonly string[] } {
  const old = new Map(running.resolved.map((entry) => [entry.setting.id, entry]));
  const needRestart: string[] = [];
  const resolved = read.resolved.map((entry) => {
    const { id } = entry.setting;
    const before = old.get(id);
    if (before === undefined || canChange(id, before.written, entry.written)) return entry;
    if (JSON.stringify(before.written) !== JSON.stringify(entry.written)) needRestart.push(id);
    return before;
  });
  return { inForce: { ...read, config: configOf(resolved), resolved }, needRestart };
}

/** The configuration that a running gateway goes by, whenever it is asked. */
export class ConfigInForce {
  #loaded: LoadedConfig;

  constructor(loaded: LoadedConfig) {
    this.#loaded = loaded;
  }

  get loaded(): LoadedConfig {
    return this.#loaded;
  }

  get config(): Config {
    return this.#loaded.config;
  }

  /** Takes over what can be changed while the gateway runs; returns the settings that need a restart to change. */
  reload(read: LoadedConfig): readonly string[] {
    const { inForce, needRestart } = reload(this.#loaded, read);
    this.#loaded = inForce;
    return needRestart;
  }
}
