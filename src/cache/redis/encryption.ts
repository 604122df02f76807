/**
 * Encryption of cached records in Redis: AES-256-GCM, a random nonce per entry. Encrypted is an entry's body, the record;
 * its name and its metadata, which scripts read, stay readable and are authenticated with it, so that no body passes for
 * that of another entry. A negative entry has no body: its metadata hold what authenticates them.
 *
 * With keys, an entry that is not encrypted is no entry, whoever has put it there. So nobody who can write to Redis but has no
 * key can make a gateway serve a record, or the lack of one, that the store never sent. Such a writer can still delete
 * entries, bring back older ones under their own names, and let calls fail for a second.
 */
import { createCipheriv, createDecipheriv, hash, type KeyObject, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_LENGTH = 8;

/**
 * `unknown-key`: no key here has encrypted it. `altered`: it is not what was encrypted under that name. `unencrypted`: a
 * process without keys has stored it, or somebody else.
 */
export const UNDECRYPTABLE_REASONS = ['unknown-key', 'altered', 'unencrypted'] as const;

/** An entry that counts as none. The message names no value. */
export class UndecryptableError extends Error {
  override readonly name = 'UndecryptableError';
  readonly reason: (typeof UNDECRYPTABLE_REASONS)[number];

  constructor(reason: UndecryptableError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** All that is authenticated with a body. */
interface Envelope {
  /** The entry's name in Redis. */
  readonly name: string;
  /** Its metadata, as they are written there. */
  readonly meta: string;
}

export class RecordCipher {
  /** By id, in the order in which they were given. */
  #keys: ReadonlyMap<string, KeyObject> = new Map();

  constructor(keys: readonly KeyObject[]) {
    this.use(keys);
  }

  /** From now on the first key encrypts, and all decrypt. Without any, records are stored as they are. */
  use(keys: readonly KeyObject[]): void {
    this.#keys = new Map(keys.map((key) => [idOf(key), key]));
  }

  /** Names the key that encrypts; null if nothing is encrypted. */
  get keyId(): string | null {
    return this.#keys.keys().next().value ?? null;
  }

  /** The nonce, the encrypted body and its tag. `keyId` is the present one: it is a part of `meta`. */
  encrypt(keyId: string, body: Buffer, envelope: Envelope): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key(keyId), nonce).setAAD(authenticated(envelope));
    return Buffer.concat([nonce, cipher.update(body), cipher.final(), cipher.getAuthTag()]);
  }

  /** The body of an entry, which is encrypted if it names a key. Throws UndecryptableError, also if it should be. */
  open(keyId: string | undefined, body: Buffer, envelope: Envelope): Buffer {
    if (keyId !== undefined) return this.#decrypt(keyId, body, envelope);
    if (this.keyId === null) return body;
    throw new UndecryptableError('unencrypted', 'it is not encrypted, and CACHE_ENCRYPTION_KEYS is set');
  }

  #decrypt(keyId: string, sealed: Buffer, envelope: Envelope): Buffer {
    const key = this.#key(keyId);
    try {
      const nonce = sealed.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(authenticated(envelope))
        .setAuthTag(sealed.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      throw new UndecryptableError('altered', 'it is not what a gateway has encrypted under that name');
    }
  }

  #key(id: string): KeyObject {
    const key = this.#keys.get(id);
    if (key !== undefined) return key;
    throw new UndecryptableError('unknown-key', `it is encrypted with a key (${id}) that CACHE_ENCRYPTION_KEYS lacks`);
  }
}

/** Reveals nothing of a random key of 256 bits. */
function idOf(key: KeyObject): string {
  return hash('sha256', key.export(), 'hex').slice(0, KEY_ID_LENGTH);
}

function authenticated({ name, meta }: Envelope): Buffer {
  return Buffer.from(`${name}\n${meta}`);
}
