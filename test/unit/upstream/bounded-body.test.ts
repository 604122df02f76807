import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';

import { describe, expect, test } from 'vitest';

import { BodyTooLargeError, readBody, UnknownCodingError } from '../../../src/upstream/bounded-body.ts';

const TEXT = 'Grüße 👋 '.repeat(5000);
const BYTES = Buffer.from(TEXT);

/** The bytes in pieces of that size. */
function streamOf(bytes: Buffer, pieceBytes = 1000): Readable {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes));
  return Readable.from(pieces, { objectMode: false });
}

test.each([undefined, '', 'identity', 'Identity'])('without a coding (%s) the bytes are the body', async (coding) => {
  const body = await readBody(streamOf(BYTES), { contentEncoding: coding, maxBytes: BYTES.length });
  expect(body.toString()).toBe(TEXT);
});

test.each(['gzip', 'GZIP', 'x-gzip', ' gzip '])('%j is decoded', async (coding) => {
  const body = await readBody(streamOf(gzipSync(BYTES), 7), { contentEncoding: coding, maxBytes: BYTES.length });
  expect(body.toString()).toBe(TEXT);
});

test('an empty body is empty', async () => {
  expect(await readBody(streamOf(Buffer.alloc(0)), { contentEncoding: undefined, maxBytes: 0 })).toHaveLength(0);
});

describe('bytes as they are sent', () => {
  test('may be as many as those that they hold, and a few more', async () => {
    const noise = randomBytes(4_000_000);
    for (const level of [0, 9]) {
      const source = streamOf(gzipSync(noise, { level }), 65_536);
      expect((await readBody(source, { contentEncoding: 'gzip', maxBytes: noise.length })).equals(noise)).toBe(true);
    }
  });

  test('are refused where hardly anything comes of them', async () => {
    const nothing = gzipSync('');
    const source = streamOf(Buffer.concat(Array.from({ length: 50_000 }, () => nothing)));
    await expect(readBody(source, { contentEncoding: 'gzip', maxBytes: 8_000_000 })).rejects.toThrow(
      new BodyTooLargeError('the body has far more bytes than what it holds'),
    );
  });
});

describe('the cap', () => {
  test.each([
    [undefined, BYTES],
    ['gzip', gzipSync(BYTES)],
  ])('counts decoded bytes: one over it is refused (%s)', async (contentEncoding, bytes) => {
    const source = streamOf(bytes);
    await expect(readBody(source, { contentEncoding, maxBytes: BYTES.length - 1 })).rejects.toThrow(
      new BodyTooLargeError(`the body is larger than ${BYTES.length - 1} bytes`),
    );
    expect(source.destroyed).toBe(true);
  });

  test('stops a source that never ends, early', async () => {
    let sent = 0;
    const source = new Readable({
      read() {
        sent += 1000;
        this.push(Buffer.alloc(1000));
      },
    });
    await expect(readBody(source, { contentEncoding: undefined, maxBytes: 50_000 })).rejects.toBeInstanceOf(
      BodyTooLargeError,
    );
    expect(source.destroyed).toBe(true);
    expect(sent).toBeLessThan(50_000 + 3 * source.readableHighWaterMark);
  });

  test('stops a gzip bomb before it is decoded', async () => {
    const member = gzipSync(Buffer.alloc(1_000_000));
    let sent = 0;
    const source = new Readable({
      read() {
        sent += 1;
        this.push(member);
      },
    });
    await expect(readBody(source, { contentEncoding: 'gzip', maxBytes: 2_000_000 })).rejects.toBeInstanceOf(
      BodyTooLargeError,
    );
    expect(source.destroyed).toBe(true);
    expect(sent * member.length).toBeLessThan(20 * source.readableHighWaterMark);
  });
});

test.each(['br', 'deflate', 'zstd', 'gzip, gzip', 'nonsense'])(
  '%s, which was not asked for, is refused',
  async (coding) => {
    const source = streamOf(BYTES);
    await expect(readBody(source, { contentEncoding: coding, maxBytes: BYTES.length })).rejects.toBeInstanceOf(
      UnknownCodingError,
    );
    expect(source.destroyed).toBe(true);
  },
);

test.each([
  ['cut off', gzipSync(BYTES).subarray(0, -20), 'Z_BUF_ERROR'],
  ['corrupt', Buffer.from('no gzip'), 'Z_DATA_ERROR'],
])("gzip that is %s rejects with zlib's error", async (_name, bytes, code) => {
  await expect(readBody(streamOf(bytes), { contentEncoding: 'gzip', maxBytes: BYTES.length })).rejects.toMatchObject({
    code,
  });
});

test.each([undefined, 'gzip'])(
  "a source that fails rejects with the source's own error (%s)",
  async (contentEncoding) => {
    const failure = new Error('the source failed');
    const source = new Readable({
      read() {
        this.destroy(failure);
      },
    });
    await expect(readBody(source, { contentEncoding, maxBytes: 1000 })).rejects.toBe(failure);
  },
);

test.each([undefined, 'gzip'])(
  'a source that has failed already rejects with what it failed with (%s)',
  async (coding) => {
    const failure = new Error('the source failed');
    const source = new Readable({ read() {} });
    source.on('error', () => {});
    source.destroy(failure);
    await new Promise((resolve) => source.once('close', resolve));
    await expect(readBody(source, { contentEncoding: coding, maxBytes: 1000 })).rejects.toThrow(
      coding === undefined ? 'the source failed' : /./,
    );
  },
);

test.each([undefined, 'gzip'])('a source that ends before its end is no body (%s)', async (coding) => {
  const source = new Readable({
    read() {
      this.push(gzipSync(BYTES).subarray(0, 20));
      setImmediate(() => this.destroy());
    },
  });
  await expect(readBody(source, { contentEncoding: coding, maxBytes: BYTES.length })).rejects.toThrow(/./);
});
