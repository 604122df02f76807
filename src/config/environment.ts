/**
 * The environment layer: one variable a setting, and `<NAME>_FILE` beside each secret. A variable that is set to
 * nothing counts as not set, since container tools hand on empty ones.
 */
import { type ConfigFault, showGiven } from './errors.ts';
import { type GivenValue, type Layer, type ReadFile, reasonOf } from './layer.ts';
import { listSettings, type Setting } from './settings.ts';
import { editDistance, nearest } from './suggest.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

type Reading = GivenValue | ConfigFault | null;

export function readEnvironment(env: Environment, readFile: ReadFile): Layer {
  const settings = listSettings();
  const values = new Map<string, GivenValue>();
  const faults = [...unknownCacheTimes(env, settings)];
  const unknown = new Set<string>();
  for (const setting of settings) {
    const reading = readVariable(setting, env, readFile);
    if (reading === null) continue;
    if ('written' in reading) {
      values.set(setting.id, reading);
    } else {
      faults.push(reading);
      unknown.add(setting.id);
    }
  }
  return { values, faults, unknown };
}

function readVariable({ env: name, secret }: Setting, env: Environment, readFile: ReadFile): Reading {
  if (name === null) return null;
  return secret ? readSecret(name, env, readFile) : direct(name, env);
}

function direct(name: string, env: Environment): GivenValue | null {
  const written = env[name];
  return written === undefined || written === '' ? null : { written, name };
}

/** A secret, from `<name>` or from the file that `<name>_FILE` names. */
export function readSecret(name: string, env: Environment, readFile: ReadFile): GivenValue | ConfigFault | null {
  const value = direct(name, env);
  const fileName = `${name}_FILE`;
  const path = env[fileName];
  if (path === undefined || path === '') return value;
  const fault = { name: fileName, given: showGiven(path, false) };
  if (value !== null) {
    return { ...fault, problem: `${name} is set too`, allowed: `only one of ${name} and ${fileName}` };
  }
  const allowed = `a file that holds the value of ${name} and nothing else`;
  try {
    const written = readFile(path).replace(/\r?\n$/, '');
    return written === '' ? { ...fault, problem: 'the file is empty', allowed } : { written, name: fileName };
  } catch (error) {
    return { ...fault, problem: reasonOf(error), allowed };
  }
}

/** Variables that begin so are meant for this program. */
const OWN_PREFIXES = ['UPSTREAM_', 'REDIS_', 'RATE_LIMIT_', 'CACHE_'];
/** Kubernetes and Docker set these for a service of that name, such as REDIS_SERVICE_HOST. */
const SERVICE_LINK = /_(?:SERVICE_(?:HOST|PORT\w*)|PORT(?:_\d+_(?:TCP|UDP)\w*)?)$/;

/** A sentence for each variable that is nearly one of ours, and one if a demo is served though a store was meant. */
export function environmentWarnings(env: Environment, { isDemo }: { readonly isDemo: boolean }): readonly string[] {
  const known = listSettings().flatMap(({ env: name, secret }) => {
    if (name === null) return [];
    return secret ? [name, `${name}_FILE`] : [name];
  });
  const given = Object.keys(env).filter((name) => env[name] !== '' && !SERVICE_LINK.test(name));
  const warnings = given
    .filter((name) => !known.includes(name) && !name.startsWith('OTEL_'))
    .flatMap((name) => {
      const meant = slipOf(name, known);
      if (meant !== null) return [`${name} is set and is no setting of evalgate: did you mean ${meant}?`];
      const prefix = OWN_PREFIXES.find((one) => name.startsWith(one));
      if (prefix === undefined) return [];
      const others = known.filter((one) => one.startsWith(prefix)).join(', ');
      return [`${name} is set and is no setting of evalgate. Those that begin with ${prefix} are ${others}.`];
    });
  const besides = given.filter((name) => /^(?:UPSTREAM|REDIS)_/i.test(name));
  if (isDemo && besides.length > 0) {
    warnings.push(
      `UPSTREAM_URL is not set, so this gateway serves the bundled SAMPLE data and no store of yours (set: ${besides.join(', ')}).`,
    );
  }
  return warnings;
}

/** The variable that was meant by a slip of at most two letters; short names must be the same but for their case. */
function slipOf(name: string, known: readonly string[]): string | null {
  const meant = nearest(name, known);
  if (meant === null) return null;
  const most = meant.length < 8 ? 0 : 2;
  return editDistance(name.toUpperCase(), meant) <= most ? meant : null;
}

/** Names that look like a cache time and are none: a typing error there would otherwise change nothing, unnoticed. */
function unknownCacheTimes(env: Environment, settings: readonly Setting[]): ConfigFault[] {
  const known = settings.flatMap(({ env: name }) => (name?.startsWith('CACHE_') === true ? [name] : []));
  return Object.entries(env)
    .filter(([name, value]) => /^CACHE_.*_(?:FRESH|STALE|ERROR)$/.test(name) && value !== '' && !known.includes(name))
    .map(([name, value]) => {
      const meant = nearest(name, known);
      const hint = meant === null ? '' : `; did you mean ${meant}?`;
      return {
        name,
        given: showGiven(value, false),
        problem: `there is no such cache time${hint}`,
        allowed: `one of ${known.join(', ')}`,
      };
    });
}
