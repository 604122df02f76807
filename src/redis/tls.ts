/** What the encryption of a connection to Redis goes by. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, createSecureContext } from 'node:tls';
import { RedisAddressError, type TlsNames } from './address.ts';

/**
 * Reads the files once: a certificate that was replaced is used after a restart. Without a file of an authority those
 * that Node trusts are trusted. Throws RedisAddressError where a file can't be read or holds something else.
 */
export function tlsOptions(names: TlsNames | null): ConnectionOptions | undefined {
  if (names === null) return undefined;
  const { caFile, certFile, keyFile, serverName } = names;
  return {
    ...(caFile === null ? {} : { ca: authority(contentOf(caFile, 'tlsCaFile')) }),
    ...(certFile === null || keyFile === null ? {} : ownCertificate(certFile, keyFile)),
    ...(serverName === null ? {} : { servername: serverName }),
  };
}

/** Node takes any text for one, and then trusts nobody. */
function authority(pem: Buffer): Buffer {
  if (!isCertificate(pem))
    throw new RedisAddressError('the file of its option tlsCaFile holds no certificate in PEM form');
  return pem;
}

function isCertificate(pem: Buffer): boolean {
  try {
    return pem.includes('-----BEGIN') && new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

function ownCertificate(certFile: string, keyFile: string): { readonly cert: Buffer; readonly key: Buffer } {
  const pair = { cert: contentOf(certFile, 'tlsCertFile'), key: contentOf(keyFile, 'tlsKeyFile') };
  try {
    createSecureContext(pair);
    return pair;
  } catch (error) {
    throw new RedisAddressError(
      'the files of its options tlsCertFile and tlsKeyFile are no certificate and its key in PEM form',
      { cause: error },
    );
  }
}

function contentOf(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new RedisAddressError(`the file of its option ${option} can't be read (${code})`, { cause: error });
  }
}
