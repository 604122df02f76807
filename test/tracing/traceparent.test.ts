/** Traces come in from consumers and go on to the store, by `traceparent` (W3C Trace Context). */
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Collector } from '../support/collector.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';

const REPORT = `/v1/workspaces/${WORKSPACE_A}/reports/${EVALUATION_ID}`;
const REQUEST = 'GET /v1/workspaces/{workspaceId}/reports/{reportId}';
const CALL = 'GET /internal/v1/evaluations/{id}';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
/** Each read asks the store. */
const UNCACHED = { CACHE_EVALUATION_FRESH: '0s', CACHE_EVALUATION_STALE: '0s', CACHE_EVALUATION_ERROR: '0s' };
const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$/;

let collector: Collector;
let gateway: TestGateway;
let key: string;

beforeEach(async () => {
  collector = await Collector.start();
});
afterEach(async () => {
  await gateway.close();
  await collector.close();
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startTestGateway({ env: { ...collector.env, ...UNCACHED, ...env } });
  gateway.store.put({ evaluations: [anEvaluation()] });
  key = await gateway.issueKey({ perMinute: 100_000, perHour: 100_000 });
}

/** A request with those headers, and the traceparent that the store then got. */
async function passedOn(headers: Readonly<Record<string, string>> = {}): Promise<string | undefined> {
  const reply = await gateway.get(REPORT, { key, headers });
  expect(reply.status).toBe(200);
  const sent = gateway.store.requests.at(-1)?.headers['traceparent'];
  return typeof sent === 'string' ? sent : undefined;
}

/** The flags that the store gets if the consumer sends those. */
async function flagOf(flags: string): Promise<string | undefined> {
  return FORM.exec((await passedOn({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-${flags}` })) ?? '')?.[3];
}

describe('by default', () => {
  beforeEach(() => start());

  test("a consumer's trace is continued, and the store gets the call's own span in it", async () => {
    const sent = await passedOn({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-01` });

    await collector.until(() => collector.spans.some(({ name }) => name === REQUEST));
    const [, traceId, spanId, flags] = FORM.exec(sent ?? '') ?? [];
    expect(collector.span(REQUEST)).toMatchObject({ traceId: TRACE_ID, parentSpanId: SPAN_ID });
    expect(collector.span(CALL)).toMatchObject({ traceId: TRACE_ID, spanId });
    expect([traceId, flags]).toEqual([TRACE_ID, '01']);
    expect(spanId).not.toBe(SPAN_ID);
  });

  test('a request without one begins a trace', async () => {
    const [, traceId] = FORM.exec((await passedOn()) ?? '') ?? [];

    await collector.until(() => collector.spans.some(({ name }) => name === REQUEST));
    const request = collector.span(REQUEST);
    expect(request.traceId).toBe(traceId);
    expect(request.parentSpanId).toBeUndefined();
  });

  test('a later version is read as far as it is known', async () => {
    const [, traceId] =
      FORM.exec((await passedOn({ traceparent: `cc-${TRACE_ID}-${SPAN_ID}-01-what-comes` })) ?? '') ?? [];

    expect(traceId).toBe(TRACE_ID);
  });

  test('consumers cannot keep their requests from being recorded', async () => {
    const sent = await passedOn({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-00` });

    const [, traceId, , flags] = FORM.exec(sent ?? '') ?? [];
    expect([traceId, flags]).toEqual([TRACE_ID, '01']);
    await collector.until(() => collector.spans.some(({ name }) => name === REQUEST));
  });

  test("tracestate and baggage are texts of the consumer's choosing, and not passed on", async () => {
    await passedOn({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`, tracestate: 'a=b', baggage: 'c=d' });

    const headers = gateway.store.requests.at(-1)?.headers;
    expect(headers).not.toHaveProperty('tracestate');
    expect(headers).not.toHaveProperty('baggage');
  });

  test('whatever the header holds, the request is answered, and nothing malformed is passed on', async () => {
    const nearly = fc
      .tuple(
        fc.constantFrom('00', '01', 'ff', '0', '000', 'FF'),
        fc.constantFrom(TRACE_ID, '0'.repeat(32), TRACE_ID.toUpperCase(), TRACE_ID.slice(1), `${TRACE_ID}0`),
        fc.constantFrom(SPAN_ID, '0'.repeat(16), SPAN_ID.toUpperCase(), SPAN_ID.slice(1), `${SPAN_ID}0`),
        fc.constantFrom('00', '01', 'ff', '0', '1', 'zz', '01-', '01-more', '01, 00'),
      )
      .map((parts) => parts.join('-'));
    // Everything that a header may hold, without spaces at its ends, which do not belong to it.
    const anything = fc
      .string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCodePoint(code)), maxLength: 100 })
      .map((text) => text.trim());
    await fc.assert(
      fc.asyncProperty(fc.oneof(nearly, anything), async (traceparent) => {
        const [, traceId, spanId] = FORM.exec((await passedOn({ traceparent })) ?? '') ?? [];
        const [, version = '', given, parent, more] =
          /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(traceparent) ?? [];
        const isValid =
          given !== undefined &&
          version !== 'ff' &&
          (version !== '00' || more === undefined) &&
          given !== '0'.repeat(32) &&
          parent !== '0'.repeat(16);
        expect(traceId === TRACE_ID).toBe(isValid);
        expect(spanId).not.toBe(SPAN_ID);
        expect(traceId).not.toBe('0'.repeat(32));
        expect(traceId).toBeDefined();
      }),
      { numRuns: 150 },
    );
  });

  test('several of the header are none', async () => {
    const reply = await gateway.raw(
      `GET ${REPORT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n` +
        `traceparent: 00-${TRACE_ID}-${SPAN_ID}-01\r\ntraceparent: 00-${TRACE_ID}-${SPAN_ID}-01\r\n\r\n`,
    );

    expect(reply.status).toBe(200);
    expect(FORM.exec(String(gateway.store.requests.at(-1)?.headers['traceparent']))?.[1]).not.toBe(TRACE_ID);
  });

  test('the line of a request in the log names its trace, also of one that fails', async () => {
    const traceparent = `00-${TRACE_ID}-${SPAN_ID}-01`;
    await gateway.get(REPORT, { key, headers: { traceparent } });
    gateway.store.fail(500);
    await gateway.get(REPORT, { key, headers: { traceparent } });

    await collector.until(() => collector.spans.filter(({ name }) => name === REQUEST).length === 2);
    const lines = gateway.logLines.filter((line) => line.includes('/reports/{reportId}'));
    expect(lines.map((line) => line.includes(`"traceId":"${TRACE_ID}"`))).toEqual([true, true]);
  });
});

describe('recording', () => {
  test('with a ratio, neither the flag nor the id of a consumer counts', async () => {
    await start({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' });

    expect(await flagOf('01')).toBe('00');
  });

  test('a consumer cannot choose an id that is always recorded, and what is done for a request is as it is', async () => {
    await start({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' });
    // The usual ratio goes by the id: this one would be recorded at any ratio above 0.
    const traceparent = `00-00000001000000010000000100000001-${SPAN_ID}-01`;
    const flags = new Set<string | undefined>();
    let recorded = 0;
    while (flags.size < 2) {
      const flag = FORM.exec((await passedOn({ traceparent })) ?? '')?.[3];
      flags.add(flag);
      if (flag === '01') recorded += 1;
    }
    await gateway.close();
    const names = collector.spans.map(({ name }) => name);
    expect(flags).toEqual(new Set(['00', '01']));
    expect([REQUEST, CALL].map((name) => names.filter((one) => one === name).length)).toEqual([recorded, recorded]);
  });

  test('with parentbased, the caller decides', async () => {
    await start({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' });

    expect(await flagOf('01')).toBe('01');
    expect(await flagOf('00')).toBe('00');
    expect(FORM.exec((await passedOn()) ?? '')?.[3]).toBe('00');
    await collector.until(() => collector.spans.some(({ name }) => name === REQUEST));
    expect(collector.span(REQUEST).traceId).toBe(TRACE_ID);
  });

  test('an unrecorded trace is still passed on, and not exported', async () => {
    await start({ OTEL_TRACES_SAMPLER: 'always_off' });

    const sent = await passedOn({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-01` });
    const again = await passedOn({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-01` });

    expect(FORM.exec(sent ?? '')?.[1]).toBe(TRACE_ID);
    expect(FORM.exec(again ?? '')?.[3]).toBe('00');
    await gateway.close();
    expect(collector.posts).toEqual([]);
  });

  test('without propagation nothing is taken over and nothing is sent', async () => {
    await start({ OTEL_PROPAGATORS: 'none' });

    expect(await passedOn({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-01` })).toBeUndefined();
    await collector.until(() => collector.spans.some(({ name }) => name === REQUEST));
    expect(collector.span(REQUEST).traceId).not.toBe(TRACE_ID);
  });
});
