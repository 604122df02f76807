/** What the encryption of a connection to Redis goes by. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { RedisAddressError, type TlsNames } from './address.ts';

/**
 * Reads the files once: a certificate that was replaced is used after a restart. Without a file of an authority those
 * that Node trusts are trusted. Throws RedisAddressError where a file can't be read.
 */
export function tlsOptions(names: TlsNames | null): ConnectionOptions | undefined {
  if (names === null) return undefined;
  const { caFile, certFile, keyFile, serverName } = names;
  return {
    ...(caFile === null ? {} : { ca: pem(caFile, 'tlsCaFile') }),
    ...(certFile === null ? {} : { cert: pem(certFile, 'tlsCertFile') }),
    ...(keyFile === null ? {} : { key: pem(keyFile, 'tlsKeyFile') }),
    ...(serverName === null ? {} : { servername: serverName }),
  };
}

function pem(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new RedisAddressError(`the file of its option ${option} can't be read (${code})`, { cause: error });
  }
}
