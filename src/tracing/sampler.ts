/** Which requests are recorded. A request is recorded with all that is done for it, or not at all. */
import { type Context, createContextKey, ROOT_CONTEXT, trace, TraceFlags } from '@opentelemetry/api';
import {
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { SamplerSettings } from '../config/tracing-sampler.ts';

const DECIDED = createContextKey('evalgate: whether a trace of its own is recorded');
const RECORDED: SamplingResult = { decision: SamplingDecision.RECORD_AND_SAMPLED };
const NOT_RECORDED: SamplingResult = { decision: SamplingDecision.NOT_RECORD };

/** For a trace of its own whose recording has been decided on elsewhere. */
export function decided(isRecorded: boolean): Context {
  return ROOT_CONTEXT.setValue(DECIDED, isRecorded);
}

/**
 * Where the caller has no say, neither its flag nor its trace's id counts: the usual ratio goes by the id, and a caller
 * could choose ids that are always recorded. `random`: from 0 to below 1.
 */
export function createSampler({ ratio, isCallerHeeded }: SamplerSettings, random: () => number = Math.random): Sampler {
  const byId = new TraceIdRatioBasedSampler(ratio);
  return {
    shouldSample: (context, traceId) => {
      const parent = trace.getSpanContext(context);
      if (parent === undefined) {
        const decision = context.getValue(DECIDED);
        return typeof decision === 'boolean' ? resultOf(decision) : byId.shouldSample(context, traceId);
      }
      const isDecidedByParent = parent.isRemote !== true || isCallerHeeded;
      return resultOf(isDecidedByParent ? (parent.traceFlags & TraceFlags.SAMPLED) !== 0 : random() < ratio);
    },
    toString: () => `evalgate{ratio=${ratio},caller=${isCallerHeeded ? 'heeded' : 'not heeded'}}`,
  };
}

function resultOf(isRecorded: boolean): SamplingResult {
  return isRecorded ? RECORDED : NOT_RECORDED;
}
