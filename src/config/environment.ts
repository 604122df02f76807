/**
 * The environment layer: one variable per setting, and `<NAME>_FILE` beside each secret. A variable that is set to
 * nothing counts as not set, since container tools hand on empty ones.
 */
import { SETTINGS } from './config.ts';
import { type ConfigFault, editDistance, nearest, showGiven } from './errors.ts';
import { type GivenValue, type Layer, type ReadFile, REMOVED, REMOVED_PROBLEM } from './settings.ts';
import { type Environment, readSecret, readVariable } from './variable.ts';

const NAMES = SETTINGS.flatMap(({ env, secret }) => (env === null ? [] : secret ? [env, `${env}_FILE`] : [env]));
const CACHE_TIME = /^CACHE_.*_(?:FRESH|STALE|ERROR)$/;
const CACHE_TIMES = NAMES.filter((name) => CACHE_TIME.test(name));

export function readEnvironment(env: Environment, readFile: ReadFile): Layer {
  const values = new Map<string, GivenValue>();
  const faults: ConfigFault[] = [];
  const unknown = new Set<string>();
  // A typing error in the name of a cache time would change nothing, unnoticed.
  for (const name of givenNames(env)) {
    if (!CACHE_TIME.test(name) || NAMES.includes(name)) continue;
    const meant = nearest(name, CACHE_TIMES);
    const problem = `there is no such cache time${meant === null ? '' : `; did you mean ${meant}?`}`;
    faults.push({ name, given: showGiven(env[name], false), problem, allowed: `one of ${CACHE_TIMES.join(', ')}` });
  }
  for (const { env: name, harmless, instead } of REMOVED) {
    const reading = readVariable(name, env);
    if (reading === null || reading.written === harmless) continue;
    faults.push({ name, given: showGiven(reading.written, false), problem: REMOVED_PROBLEM, allowed: instead });
  }
  for (const { id, env: name, secret } of SETTINGS) {
    if (name === null) continue;
    const reading = secret ? readSecret(name, env, readFile) : readVariable(name, env);
    if (reading === null) continue;
    if ('written' in reading) {
      values.set(id, reading);
    } else {
      faults.push(reading);
      unknown.add(id);
    }
  }
  return { values, faults, unknown };
}

/** Variables with these prefixes are meant for this program. */
const OWN_PREFIXES = ['UPSTREAM_', 'REDIS_', 'RATE_LIMIT_', 'CACHE_', 'CHANGES_'];
/** Kubernetes and Docker set these for a service of that name, such as REDIS_SERVICE_HOST. */
const SERVICE_LINK = /_(?:SERVICE_(?:HOST|PORT\w*)|PORT(?:_\d+_(?:TCP|UDP)\w*)?)$/;
/** A shorter name has to be the same but for its case: `WORKER` is a common name, and near `WORKERS`. */
const MIN_LENGTH_FOR_SLIPS = 8;
const MAX_SLIPS = 2;

/** One sentence per variable that is nearly one of ours. */
export function environmentWarnings(env: Environment): readonly string[] {
  return givenNames(env).flatMap((name) => {
    if (NAMES.includes(name) || name.startsWith('OTEL_')) return [];
    const meant = nearest(name, NAMES, MAX_SLIPS);
    const maxSlips = meant === null || meant.length < MIN_LENGTH_FOR_SLIPS ? 0 : MAX_SLIPS;
    if (meant !== null && editDistance(name.toUpperCase(), meant) <= maxSlips) {
      return [`${name} is set and is no setting of evalgate: did you mean ${meant}?`];
    }
    const prefix = OWN_PREFIXES.find((one) => name.startsWith(one));
    if (prefix === undefined) return [];
    const others = NAMES.filter((one) => one.startsWith(prefix)).join(', ');
    return [`${name} is set and is no setting of evalgate. Those that begin with ${prefix} are ${others}.`];
  });
}

/** A sentence if the sample store is served though variables say that another was meant; null if none do. */
export function demoWarning(env: Environment): string | null {
  const meant = givenNames(env).filter((name) => /^(?:UPSTREAM|REDIS)_/i.test(name));
  if (meant.length === 0) return null;
  return `UPSTREAM_URL is not set, so this gateway serves the bundled SAMPLE data and no store of yours (set: ${meant.join(', ')}).`;
}

function givenNames(env: Environment): readonly string[] {
  return Object.keys(env).filter((name) => env[name] !== '' && !SERVICE_LINK.test(name));
}

/**
 * Whether spans are to be sent, by the variables of OpenTelemetry: `OTEL_TRACES_EXPORTER` says where to, and without it an
 * endpoint is enough.
 */
export function isTracingOn(env: Environment): boolean {
  const given = (name: string): string => env[name]?.trim().toLowerCase() ?? '';
  if (given('OTEL_SDK_DISABLED') === 'true') return false;
  const exporters = given('OTEL_TRACES_EXPORTER');
  const endpoints = given('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') + given('OTEL_EXPORTER_OTLP_ENDPOINT');
  return exporters === '' ? endpoints !== '' : !exporters.split(',').some((name) => name.trim() === 'none');
}
