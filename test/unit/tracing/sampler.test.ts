import { ROOT_CONTEXT, type SpanContext, SpanKind, trace } from '@opentelemetry/api';
import { type Sampler, SamplingDecision } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { createSampler, decided } from '../../../src/tracing/sampler.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
/** The usual ratio goes by the id: this one is recorded at any ratio above 0. */
const ALWAYS_RECORDED_ID = '00000001000000010000000100000001';

function isRecorded(sampler: Sampler, parent: Partial<SpanContext> | null, traceId = TRACE_ID): boolean {
  const context =
    parent === null
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: '00f067aa0ba902b7', traceFlags: 0, ...parent });
  const { decision } = sampler.shouldSample(context, traceId, 'a', SpanKind.SERVER, {}, []);
  return decision === SamplingDecision.RECORD_AND_SAMPLED;
}

/** Of a quarter, where chance has it so. */
function quarter(random: number): Sampler {
  return createSampler({ ratio: 0.25, isCallerHeeded: false }, () => random);
}

/** Of a trace of its own that a request has caused. */
function decisionOf(isCauseRecorded: boolean): SamplingDecision {
  return quarter(0.5).shouldSample(decided(isCauseRecorded), TRACE_ID, 'a', SpanKind.INTERNAL, {}, []).decision;
}

describe('where callers are not heeded', () => {
  test.each([0, 1])('a caller that sends the flag %i has no say', (traceFlags) => {
    expect(isRecorded(quarter(0.2499), { isRemote: true, traceFlags })).toBe(true);
    expect(isRecorded(quarter(0.25), { isRemote: true, traceFlags })).toBe(false);
  });

  test('a caller cannot choose an id that is always recorded', () => {
    expect(isRecorded(quarter(0.9), null, ALWAYS_RECORDED_ID)).toBe(true);
    expect(isRecorded(quarter(0.9), { isRemote: true, traceFlags: 1 }, ALWAYS_RECORDED_ID)).toBe(false);
  });

  test('what is done for a request is recorded where the request is', () => {
    expect(isRecorded(quarter(0.9), { traceFlags: 1 })).toBe(true);
    expect(isRecorded(quarter(0.1), { traceFlags: 0 })).toBe(false);
  });

  test('what a request has caused is recorded where the request is', () => {
    expect(decisionOf(true)).toBe(SamplingDecision.RECORD_AND_SAMPLED);
    expect(decisionOf(false)).toBe(SamplingDecision.NOT_RECORD);
  });
});

describe('where callers are heeded', () => {
  test.each([0, 0.5, 1])('their flag counts, whatever the ratio: %d', (ratio) => {
    const heeding = createSampler({ ratio, isCallerHeeded: true });

    expect(isRecorded(heeding, { isRemote: true, traceFlags: 1 })).toBe(true);
    expect(isRecorded(heeding, { isRemote: true, traceFlags: 0 })).toBe(false);
  });

  test.each([
    [1, true],
    [0, false],
  ])('without a caller the ratio counts: %d', (ratio, is) => {
    expect(isRecorded(createSampler({ ratio, isCallerHeeded: true }), null)).toBe(is);
  });
});
