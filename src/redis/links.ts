/** The links of a gateway to the state Redis and to the cache Redis, which may be one Redis. */
import { StartError } from '../server/server.ts';
import { RedisAddressError } from './address.ts';
import { RedisLink, type RedisLinkOptions, type RedisRole } from './connection.ts';

export interface Links {
  readonly state: RedisLink;
  readonly cache: RedisLink;
  /** Whether one Redis has both roles. */
  readonly isOne: boolean;
}

export interface Addresses {
  /** The address of the state Redis. */
  readonly url: string;
  /** The address of the cache Redis; null if the state Redis has both roles. */
  readonly cacheUrl: string | null;
  /** Reads the files that an address names, as they were when the configuration was read. */
  readonly readFile: (path: string) => string;
}

/**
 * A Redis that does not answer keeps no gateway from starting: the links go on trying. Throws a StartError for an address
 * that is none.
 */
export function openLinks(
  { url, cacheUrl, readFile }: Addresses,
  options: Pick<RedisLinkOptions, 'timeoutMs' | 'onCommand'>,
): Links {
  const isOne = cacheUrl === null || cacheUrl === url;
  const settings = { state: 'REDIS_URL', cache: isOne ? 'REDIS_URL' : 'REDIS_CACHE_URL' } as const;
  const connect = (role: RedisRole, address: string): RedisLink => {
    try {
      return new RedisLink({ url: address, readFile, ...options, role, setting: settings[role] });
    } catch (error) {
      if (!(error instanceof RedisAddressError)) throw error;
      throw new StartError(`${settings[role]}: ${error.message}.`);
    }
  };
  const state = connect('state', url);
  const cache = connect('cache', cacheUrl ?? url);
  // R6: a request that waited for one of them does not wait for the other too.
  state.onTimeout(() => void cache.doubt());
  return { state, cache, isOne };
}

/** Goes over to addresses with other secrets. Throws a RedisAddressError for one that is none; the links stay as they are. */
export function reconnectLinks({ state, cache }: Links, { url, cacheUrl, readFile }: Addresses): void {
  state.reconnect({ url, readFile });
  cache.reconnect({ url: cacheUrl ?? url, readFile });
}

export async function closeLinks({ state, cache }: Links): Promise<void> {
  await state.close();
  await cache.close();
}
