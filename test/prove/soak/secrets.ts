/** Finds planted secrets where they must not be. */
import { zstdDecompressSync } from 'node:zlib';
import { namesIn, type TestClient } from '../../support/redis/client.ts';

const MAX_FOUND = 5;
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

export class Secrets {
  /** Never anywhere but in the requests themselves. */
  readonly #credentials = new Set<string>();
  /** Contents of records: in answers and in the cache alone. */
  readonly #contents: readonly string[];
  /** Where any was found: the first few. */
  readonly found: string[] = [];
  /** How many texts were searched. */
  searched = 0;

  constructor(credentials: readonly string[], contents: readonly string[]) {
    for (const credential of credentials) this.#credentials.add(credential);
    this.#contents = contents;
  }

  add(credential: string): void {
    this.#credentials.add(credential);
  }

  /** Searches the text of a log, of metrics or of errors. */
  search(where: string, text: string): void {
    this.#searchFor([...this.#credentials, ...this.#contents], where, text);
  }

  /** All names and values; compressed ones are looked into. */
  async searchRedis(client: TestClient): Promise<void> {
    for (const name of await namesIn(client, '*')) {
      this.#searchFor(this.#credentials, 'a name in Redis', name);
      for (const value of await valuesOf(client, name)) {
        for (const text of textsOf(value)) this.#searchFor(this.#credentials, `Redis's ${name}`, text);
      }
    }
  }

  #searchFor(secrets: Iterable<string>, where: string, text: string): void {
    this.searched += 1;
    for (const secret of secrets) {
      if (text.includes(secret) && this.found.length < MAX_FOUND) this.found.push(`${secret.slice(0, 20)} in ${where}`);
    }
  }
}

async function valuesOf(client: TestClient, name: string): Promise<readonly Buffer[]> {
  switch (await client.type(name)) {
    case 'string': {
      const value = await client.getBuffer(name);
      return value === null ? [] : [value];
    }
    case 'hash':
      return Object.entries(await client.hgetallBuffer(name)).flatMap(([field, value]) => [Buffer.from(field), value]);
    case 'list':
      return client.lrangeBuffer(name, 0, -1);
    case 'set':
      return client.smembersBuffer(name);
    case 'zset':
      return client.zrangeBuffer(name, '0', '-1');
    case 'stream':
      return (await client.xrangeBuffer(name, '-', '+')).flat(2);
    case 'none':
      return [];
    default:
      throw new Error(`${name} is of a type that the search does not know`);
  }
}

function textsOf(value: Buffer): readonly string[] {
  const start = value.indexOf(ZSTD_MAGIC);
  const plain = value.toString('latin1');
  if (start < 0) return [plain];
  try {
    return [plain, zstdDecompressSync(value.subarray(start)).toString('utf8')];
  } catch {
    return [plain];
  }
}
