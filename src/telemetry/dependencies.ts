/** The dependencies of every gateway besides the store and Redis: its settings, its own capacity, and the maintenance switch. */
import type { Maintenance } from '../journal/journal.ts';
import { MaintenanceState } from '../upstream/maintenance.ts';
import type { Config } from '../config/config.ts';
import { isCacheExposed } from '../config/cross-checks.ts';
import type { ConfigFault } from '../config/errors.ts';
import type { LoadedConfig } from '../config/load.ts';
import { type SecretFault, secretsInFiles } from '../config/secret-files.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { degraded, type Health } from './health.ts';
import type { Metrics } from './metrics.ts';
import { Trouble } from './trouble.ts';

/** A process that refuses now and then refuses until it has not for so long: otherwise each refusal were two changes. */
const CAPACITY_SETTLED_AFTER_MS = 10_000;
/** No timer can wait longer than some weeks. */
const MAX_WAIT_MS = 86_400_000;

/**
 * Tracks the secrets that are in files, if there are any. Returns what is to be called with those that could not be read
 * again.
 */
export function trackSecrets(
  health: Health,
  loaded: LoadedConfig,
  initial: readonly SecretFault[],
): (faults: readonly SecretFault[]) => void {
  let faults = initial;
  const names = secretsInFiles(loaded).map(({ name }) => name);
  if (names.length === 0) return () => {};
  health.add({
    name: 'secrets',
    okMessage: 'every secret could be read again',
    check: () => {
      if (faults.length === 0) return { status: 'ok', detail: `in force as last read: ${names.join(', ')}` };
      const found = faults.map(({ name, problem }) => `${name}: ${problem}`).join('; ');
      return degraded(
        'a secret could not be read again: its old value stays in force',
        `the old value stays in force: ${found}`,
      );
    },
  });
  return (now) => {
    faults = now;
    health.update('secrets');
  };
}

/** Takes whether the configuration could be read again. */
export interface ConfigReads {
  /** It is in force. */
  succeeded(): void;
  /** The old one stays in force. */
  failed(faults: readonly ConfigFault[]): void;
}

/** Tracks whether the last configuration that was read is in force; the first one is. */
export function trackConfig(
  { health, metrics, clock }: { readonly health: Health; readonly metrics: Metrics; readonly clock: Clock },
  file: string,
): ConfigReads {
  let faults: readonly ConfigFault[] = [];
  health.add({
    name: 'config',
    okMessage: 'the configuration could be read again',
    check: () => {
      if (faults.length === 0) return { status: 'ok', detail: `in force as last read: ${file}` };
      // Not what was given: probes need no token, and it may be the address of the store.
      const found = faults.map(({ name, allowed }) => `${name} (allowed: ${allowed})`).join('; ');
      return degraded(
        'the configuration could not be read again: the old one stays in force',
        `the old one stays in force, since the new one is invalid: ${found}`,
      );
    },
  });
  const noteRead = (): void => {
    metrics.configReadAt.set(clock.nowMs() / 1000);
    metrics.configIsRead.set(1);
  };
  noteRead();
  return {
    succeeded: () => {
      faults = [];
      health.update('config');
      metrics.configReloads.inc({ result: 'success' });
      noteRead();
    },
    failed: (now) => {
      faults = now;
      health.update('config');
      metrics.configReloads.inc({ result: 'failure' });
      metrics.configIsRead.set(0);
    },
  };
}

/** Notes that a request or a connection was refused, because this process has as many as it may have. */
export function trackCapacity(health: Health, clock: Clock): () => void {
  const refusing = new Trouble(clock, CAPACITY_SETTLED_AFTER_MS);
  health.add({
    name: 'capacity',
    okMessage: 'no request or connection is refused any more',
    check: () => {
      const last = refusing.current();
      if (last === null) return { status: 'ok', detail: 'no request or connection is refused' };
      return degraded(
        'the process has reached its limit of requests or connections: it refuses others',
        'it refuses some: the limit of requests (server.maxInFlight) or connections (server.maxConnections, server.maxConnectionsPerAddress) is reached',
        { sinceMs: last.sinceMs },
      );
    },
  });
  return () => {
    refusing.note(null);
    refusing.noteOk();
    health.update('capacity');
  };
}

/**
 * The maintenance switch of this process, as one of its dependencies. Its end is noticed when it comes, by this process's
 * clock, although nothing reports it then.
 */
export function createMaintenance(health: Health, clock: Clock, timers: Timers): MaintenanceState {
  /** The last that was on; null if somebody has ended it. */
  let last: Maintenance | null = null;
  let cancel: (() => void) | null = null;
  const update = (): void => {
    cancel?.();
    cancel = null;
    health.update('maintenance');
    const on = state.current();
    // A timer may fire a moment before the clock has come so far; then it is armed again.
    if (on !== null) cancel = timers.after(Math.min(MAX_WAIT_MS, on.untilMs - clock.nowMs()), update);
  };
  const state = new MaintenanceState(clock, () => {
    last = state.current();
    update();
  });
  health.add({
    name: 'maintenance',
    okMessage: 'maintenance has ended',
    check: () => {
      const on = state.current();
      if (on === null) return { status: 'ok', detail: 'off', ...(last === null ? {} : { sinceMs: last.untilMs }) };
      // Without who switched it on: probes need no token.
      const detail = `the store is asked nothing until ${new Date(on.untilMs).toISOString()}`;
      return degraded('maintenance: the store is asked nothing', detail, {
        sinceMs: on.sinceMs,
        deadlineMs: on.untilMs,
      });
    },
  });
  return state;
}

/** How cached records are protected in the cache Redis, for `/readyz`. */
export function cacheProtection(config: Config): string {
  if (config.cache.encryptionKeys.length > 0) return 'cached records are encrypted';
  const exposure = isCacheExposed(config) ? ', and cross the network in the clear (no TLS)' : '';
  return `cached records are not encrypted${exposure}`;
}
