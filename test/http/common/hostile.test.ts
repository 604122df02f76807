import { beforeEach, describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type RawReply, type Reply, startTestGateway } from '../../support/gateway.ts';
import { isOfTemplate } from '../../support/store-templates.ts';
import {
  ENDPOINTS,
  type EndpointRow,
  errorText,
  GET_CALL,
  GET_CALL_TRANSCRIPT,
  GET_REPORT,
  LIST_CALLS,
  LIST_REPORTS,
  TEXTS,
} from './endpoints.ts';
import {
  HOSTILE_HEADER_LINES,
  HOSTILE_HEADERS,
  HOSTILE_QUERIES,
  HOSTILE_REQUEST_LINES,
  HOSTILE_SEGMENTS,
} from './hostile-inputs.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } }));
const subject = putSubject(gateway.store, newSubject('11111111-1111-4111-8111-111111111111'));
const key = await keyFor(gateway, subject);
beforeEach(() => {
  // Absence is remembered for 15 s: each test sees its own calls.
  gateway.clock.advance(20_000);
});

/** Taken from the store's requests since the last look. */
function expectOnlyTemplates(): void {
  for (const { method, path, headers } of gateway.store.requests.splice(0)) {
    expect(method).toBe('GET');
    expect([path, isOfTemplate(path)]).toEqual([path, true]);
    expect(headers).not.toHaveProperty('x-injected');
    const workspaces = new URL(path, 'http://x').searchParams.getAll('workspaceId');
    expect(workspaces.filter((id) => id !== subject.workspaceId)).toEqual([]);
  }
}

const V1_ERROR = /^\{(?:"reports":\[\],)?"error":"[^"\\]*(?:\\.[^"\\]*)*"\}$/;
const V2_ERROR = /^\{"error":\{"message":"[^"\\]*(?:\\.[^"\\]*)*"\}\}$/;

/** Below 500, in the form of its surface, with nothing of the input in a header. */
function expectBenign(reply: Reply, surface: 'v1' | 'v2'): void {
  expect(reply.status).toBeLessThan(500);
  expect(reply.status).toBeGreaterThanOrEqual(200);
  expect(reply.status < 400 || (surface === 'v1' ? V1_ERROR : V2_ERROR).test(reply.text)).toBe(true);
  expect(reply.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  expect(reply.headers).not.toHaveProperty('x-injected');
  expect(reply.headers).not.toHaveProperty('set-cookie');
}

/** Held against the OpenAPI document unless the path is none of its. */
function ask(path: string, surface: 'v1' | 'v2', headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
  return gateway.get(path, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    isUndocumented: ({ text }) => text === NO_ADDRESS[surface],
  });
}

const NO_ADDRESS = {
  v1: errorText(GET_REPORT, 404, TEXTS.noAddress),
  v2: errorText(GET_CALL, 404, TEXTS.noAddress),
};

/** Every endpoint's path with something else in place of one of its parameters. */
function pathsWith(segment: string): readonly (readonly [EndpointRow, string])[] {
  return ENDPOINTS.flatMap((endpoint) => {
    const paths = new Set([
      endpoint.path({ ...subject, id: segment, scorecardId: segment }),
      endpoint.path({ ...subject, workspaceId: segment }),
    ]);
    paths.delete(endpoint.path(subject));
    return [...paths].map((path) => [endpoint, path] as const);
  });
}

test.each(HOSTILE_SEGMENTS.map((segment) => [segment.slice(0, 60), segment]))(
  'Q7, K5: in place of an id or a workspace: %s',
  async (_shown, segment) => {
    for (const [endpoint, path] of pathsWith(segment)) {
      const reply = await ask(path, endpoint.surface);
      expectBenign(reply, endpoint.surface);
      expect([403, 404]).toContain(reply.status);
      expect(
        reply.text === endpoint.forbidden ||
          reply.text === endpoint.notFound ||
          reply.text === NO_ADDRESS[endpoint.surface],
      ).toBe(true);
    }
    expectOnlyTemplates();
  },
);

/** One of each way in which queries are read. */
const QUERIED: readonly (readonly [EndpointRow, statuses: readonly number[]])[] = [
  [LIST_REPORTS, [200, 400]],
  // v1's single reads take no notice of a query, unless it is longer than any that can be meant.
  [GET_REPORT, [200, 404]],
  [LIST_CALLS, [200, 400, 403]],
  [GET_CALL, [200, 400]],
  [GET_CALL_TRANSCRIPT, [200, 400]],
];

test.each(HOSTILE_QUERIES.map((query) => [query.slice(0, 60), query]))(
  'Q1 to Q4: as a query: %s',
  async (_shown, query) => {
    for (const [endpoint, statuses] of QUERIED) {
      const path = `${endpoint.path(subject)}?${query}`;
      const reply = await ask(path, endpoint.surface);
      expectBenign(reply, endpoint.surface);
      expect(statuses).toContain(reply.status);
      expect(reply.status === 200 && path.length > 8192).toBe(false);
    }
    expectOnlyTemplates();
  },
);

test.each(HOSTILE_HEADERS.map(([name, value]) => [name, value.slice(0, 40), value] as const))(
  'as a header: %s: %s',
  async (name, _shown, value) => {
    for (const endpoint of [GET_REPORT, LIST_CALLS]) {
      const reply = await ask(endpoint.path(subject), endpoint.surface, { [name]: value });
      expectBenign(reply, endpoint.surface);
      expect(name === 'authorization' ? [401] : [200, 304]).toContain(reply.status);
    }
    expectOnlyTemplates();
  },
);

/** No answer at all (0) is the right one to CONNECT, and to what does not even end. */
function expectBenignRaw({ status, headers, body }: RawReply): void {
  expect([0, 200, 302, 304, 400, 401, 404, 405]).toContain(status);
  if (status === 0) return;
  expect(headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  expect(headers['vary']).toBe('Authorization, Accept-Encoding');
  expect(headers).not.toHaveProperty('x-injected');
  const isError = V1_ERROR.test(body) || V2_ERROR.test(body);
  expect([isError, headers['cache-control'] === 'no-store']).toEqual([status >= 400, status >= 400 || status === 302]);
}

/** The rest of a request behind its first lines. */
function rest(): string {
  return `Host: h\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`;
}

describe('invalid HTTP', () => {
  test.each(HOSTILE_REQUEST_LINES.map((line) => [JSON.stringify(line.slice(0, 60)), line]))(
    'as a request line: %s',
    async (_shown, line) => {
      expectBenignRaw(await gateway.raw(`${line}\r\n${rest()}`));
      expectBenignRaw(await gateway.raw(Buffer.from(`${line}\r\n${rest()}`, 'latin1')));
      expectOnlyTemplates();
    },
  );

  test.each(HOSTILE_HEADER_LINES.map((lines) => [JSON.stringify(lines.slice(0, 60)), lines]))(
    'as header lines: %s',
    async (_shown, lines) => {
      expectBenignRaw(await gateway.raw(`GET /v2/calls HTTP/1.1\r\n${lines}\r\n${rest()}`));
      expectOnlyTemplates();
    },
  );

  test('a second request that is smuggled in a body is not answered', async () => {
    const smuggled = `GET /v2/calls HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    const reply = await gateway.raw(
      `POST /v2/calls HTTP/1.1\r\nHost: h\r\nContent-Length: ${smuggled.length}\r\nConnection: close\r\n\r\n${smuggled}`,
    );
    expect(reply.status).toBe(405);
    expect(reply.body).toMatch(V2_ERROR);
  });
});

test('after all of that the gateway is as good as before', async () => {
  for (const endpoint of ENDPOINTS) {
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(200);
  }
  expect(Object.prototype).not.toHaveProperty('admin');
  expect(Object.prototype).not.toHaveProperty('polluted');
  expect(gateway.logLines.filter((line) => /"level":"(?:error|fatal)"/.test(line))).toEqual([]);
});
