/** What of a configuration a running gateway can take over. */
import type { LoadedConfig, Origin } from './load.ts';

/** Anything else needs a new process. */
const RELOADABLE = /^(?:cache\.classes\.|rateLimit\.|log\.level)/;

export interface Reloaded {
  /** What is in force from now on: the new values of what can be taken over, the old ones of the rest. */
  readonly inForce: LoadedConfig;
  /** The settings whose new values only a restart brings into force. */
  readonly needRestart: readonly string[];
}

/** `running` is what has been in force so far, `read` what was read now. */
export function reload(running: LoadedConfig, read: LoadedConfig): Reloaded {
  const old = new Map(running.resolved.map((entry) => [entry.setting.id, entry]));
  const resolved = read.resolved.map((entry) =>
    RELOADABLE.test(entry.setting.id) ? entry : (old.get(entry.setting.id) ?? entry),
  );
  const { rateLimit, log } = read.config;
  const { classes, outdatedLimits } = read.config.cache;
  const config = { ...running.config, rateLimit, log, cache: { ...running.config.cache, classes, outdatedLimits } };
  const needRestart = read.resolved
    .filter(({ setting, written }) => !RELOADABLE.test(setting.id) && isOther(old.get(setting.id)?.written, written))
    .map(({ setting }) => setting.id);
  return { inForce: { ...read, config, resolved }, needRestart };
}

function isOther(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) !== JSON.stringify(other);
}

/** Where the value of the setting came from. */
export function originOf({ resolved }: LoadedConfig, id: string): Origin {
  return resolved.find(({ setting }) => setting.id === id)?.origin ?? 'default';
}
