/** What of a configuration a running gateway can take over. */
import type { LoadedConfig, Origin } from './load.ts';

/** Anything else needs a new process. */
const RELOADABLE = /^(?:cache\.classes\.|rateLimit\.|log\.level)/;

/** The settings that differ and that only a restart changes. */
export function restartSettings(before: LoadedConfig, after: LoadedConfig): readonly string[] {
  const old = new Map(before.resolved.map(({ setting, written }) => [setting.id, JSON.stringify(written)]));
  return after.resolved
    .filter(({ setting, written }) => old.get(setting.id) !== JSON.stringify(written))
    .map(({ setting }) => setting.id)
    .filter((id) => !RELOADABLE.test(id));
}

/** Where the value of the setting came from. */
export function originOf({ resolved }: LoadedConfig, id: string): Origin {
  return resolved.find(({ setting }) => setting.id === id)?.origin ?? 'default';
}
