/** Which requests are recorded: `OTEL_TRACES_SAMPLER` and its argument. */
import type { OtelVariables } from './otel-variables.ts';

export interface SamplerSettings {
  /** The share of requests that are recorded, from 0 to 1, where the caller has no say. */
  readonly ratio: number;
  /** Whether a caller that sends `traceparent` says by it whether the request is recorded. */
  readonly isCallerHeeded: boolean;
}

const NAME = 'OTEL_TRACES_SAMPLER';
const ARGUMENT = 'OTEL_TRACES_SAMPLER_ARG';
const PARENT_BASED = 'parentbased_';
const KINDS = ['always_on', 'always_off', 'traceidratio'] as const;
const NAMES = [...KINDS, ...KINDS.map((kind) => `${PARENT_BASED}${kind}` as const)];

/**
 * Callers are consumers, and not trusted with what is recorded: by default every request is, whatever they say. The SDK's
 * own default is `parentbased_always_on`, by which a caller could hide its requests.
 */
export function readSampler(variables: OtelVariables): SamplerSettings {
  const name = variables.oneOf(NAME, NAMES) ?? 'always_on';
  const isCallerHeeded = name.startsWith(PARENT_BASED);
  if (name.endsWith('always_on')) return { ratio: 1, isCallerHeeded };
  if (name.endsWith('always_off')) return { ratio: 0, isCallerHeeded };
  return { ratio: readRatio(variables), isCallerHeeded };
}

/** By the specification it is 1 where it is not given. */
function readRatio(variables: OtelVariables): number {
  const written = variables.given(ARGUMENT);
  if (written === null) return 1;
  const ratio = /^(?:\d+\.?\d*|\.\d+)(?:e-?\d{1,2})?$/i.test(written) ? Number(written) : Number.NaN;
  if (ratio >= 0 && ratio <= 1) return ratio;
  variables.fault(ARGUMENT, { allowed: 'a share from 0 to 1, such as 0.01 for one request of a hundred' });
  return 1;
}
