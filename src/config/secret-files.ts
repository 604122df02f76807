/**
 * Secrets in files, read again while the gateway runs: those of `..._FILE` variables, and the TLS files that a Redis address
 * names. Their contents are compared, because Kubernetes replaces them by swapping a symbolic link.
 */
import { isDeepStrictEqual } from 'node:util';
import { parseRedisAddress, RedisAddressError, tlsFilesOf, tlsOptions } from '../redis/address.ts';
import type { Config } from './config.ts';
import { reload } from './effective.ts';
import type { Environment } from './variable.ts';
import { ConfigError } from './errors.ts';
import { keptOr, loadConfig, type LoadedConfig, readText } from './load.ts';
import type { ReadFile } from './settings.ts';

/** A secret that could not be read again: its old value stays in force. */
export interface SecretFault {
  /** The variable, or the setting and its file. */
  readonly name: string;
  /** Why. Holds nothing of the secret. */
  readonly problem: string;
}

/** The findings of a look at the files. */
export interface SecretsLook {
  /** The configuration in force from now on; null if the files changed nothing in it. */
  readonly loaded: LoadedConfig | null;
  /** The names of those that have changed. */
  readonly changed: readonly string[];
  /** All that hold now, of earlier looks too. */
  readonly faults: readonly SecretFault[];
}

interface SecretInFiles {
  readonly id: string;
  readonly name: string;
  readonly paths: readonly string[];
}

/** By setting: its address may name files. */
const ADDRESSES: Readonly<Record<string, (config: Config) => string | null>> = {
  'redis.url': ({ redis }) => redis.url,
  'redis.cacheUrl': ({ redis }) => redis.cacheUrl,
};
const FILE_VARIABLE = /^[A-Z_]+_FILE$/;

/** The secrets that are in files, wholly or in part. */
export function secretsInFiles({ resolved, config }: LoadedConfig, env: Environment = {}): readonly SecretInFiles[] {
  return resolved.flatMap(({ setting: { id, secret }, name }) => {
    if (!secret || name === null) return [];
    const isInFile = FILE_VARIABLE.test(name);
    const tlsFiles = tlsFilesOf(ADDRESSES[id]?.(config) ?? null);
    const paths = [...(isInFile ? [env[name] ?? ''] : []), ...tlsFiles];
    return paths.length === 0 ? [] : [{ id, name, paths }];
  });
}

export class SecretFiles {
  readonly #env: Environment;
  readonly #readFile: ReadFile;
  #inForce: LoadedConfig;
  #faults: readonly SecretFault[] = [];
  #listener: ((look: SecretsLook) => void) | null = null;

  constructor({ env, loaded, readFile = readText }: { env: Environment; loaded: LoadedConfig; readFile?: ReadFile }) {
    this.#env = env;
    this.#readFile = readFile;
    this.#inForce = loaded;
  }

  get faults(): readonly SecretFault[] {
    return this.#faults;
  }

  /** Begins: `listener` is called with each look that found something new. */
  listen(listener: (look: SecretsLook) => void): void {
    this.#listener = listener;
  }

  /** Reads all of them again, each by itself: a faulty one keeps no other from changing. */
  look(): void {
    // Without a listener nothing would use what is found.
    if (this.#listener === null) return;
    const before = this.#inForce;
    const changed: string[] = [];
    const faults: SecretFault[] = [];
    for (const secret of secretsInFiles(before, this.#env)) {
      if (!this.#isOther(secret)) continue;
      const read = this.#read(secret);
      if (typeof read === 'string') {
        faults.push({ name: secret.name, problem: read });
      } else {
        this.#inForce = read;
        changed.push(secret.name);
      }
    }
    if (changed.length === 0 && isDeepStrictEqual(faults, this.#faults)) return;
    this.#faults = faults;
    this.#listener({ loaded: this.#inForce === before ? null : this.#inForce, changed, faults });
  }

  /**
   * Reads the configuration again, except secrets in files, which `look` reads. Returns it with the names of the secrets in
   * it that have changed. Throws ConfigError.
   */
  readAgain(): { readonly loaded: LoadedConfig; readonly changed: readonly string[] } {
    const before = this.#inForce;
    const paths = new Set(secretsInFiles(before, this.#env).flatMap((secret) => secret.paths));
    const kept = keptOr(before.files, this.#readFile);
    const readFile: ReadFile = (path) => (paths.has(path) ? kept(path) : this.#readFile(path));
    const loaded = loadConfig({ env: this.#env, readFile });
    this.#inForce = reload(before, loaded).inForce;
    const old = new Map(before.resolved.map(({ setting, written }) => [setting.id, written]));
    const changed = this.#inForce.resolved
      .filter(({ setting: { id, secret }, written }) => secret && old.get(id) !== written)
      .map(({ setting, name }) => name ?? setting.id);
    return { loaded, changed };
  }

  #isOther({ paths }: SecretInFiles): boolean {
    return paths.some((path) => {
      try {
        return this.#readFile(path) !== this.#inForce.files[path];
      } catch {
        return true;
      }
    });
  }

  /** The configuration with its new value, or why it cannot be used. */
  #read({ id, paths }: SecretInFiles): LoadedConfig | string {
    const { files } = this.#inForce;
    const readFile: ReadFile = (path) => (paths.includes(path) ? this.#readFile : keptOr(files, this.#readFile))(path);
    try {
      const loaded = loadConfig({ env: this.#env, readFile });
      const url = ADDRESSES[id]?.(loaded.config) ?? null;
      if (url !== null) tlsOptions(parseRedisAddress(url).tls, keptOr(loaded.files, readFile));
      const { inForce, needRestart } = reload(this.#inForce, loaded);
      return needRestart.includes(id) ? 'it leads to another Redis, which needs a restart' : inForce;
    } catch (error) {
      if (error instanceof RedisAddressError) return error.message;
      if (!(error instanceof ConfigError)) throw error;
      const [fault] = error.faults;
      return fault?.problem ?? `allowed is ${fault?.allowed}`;
    }
  }
}
