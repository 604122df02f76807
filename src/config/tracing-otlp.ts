/** Where spans are sent, and how: `OTEL_EXPORTER_OTLP_*`. What is set for traces alone comes before what is set for all. */
import type { OtelVariables } from './otel-variables.ts';

export interface OtlpSettings {
  readonly protocol: 'http/protobuf' | 'http/json';
  /** The whole address; it may hold credentials. */
  readonly url: string;
  /** They may hold credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly compression: 'gzip' | 'none';
  /** PEM; null where the machine's own authorities are trusted, or no certificate is shown. */
  readonly tls: { readonly ca: string | null; readonly cert: string | null; readonly key: string | null };
}

const GENERAL = 'OTEL_EXPORTER_OTLP_';
const OF_TRACES = `${GENERAL}TRACES_`;
const DEFAULT_URL = 'http://localhost:4318/v1/traces';
const PATH = 'v1/traces';

export function readOtlp(variables: OtelVariables): OtlpSettings {
  const pem = (option: string): string | null => {
    const name = named(variables, option);
    return name === null ? null : variables.file(name, 'a file that can be read, in PEM form');
  };
  return {
    protocol: readProtocol(variables),
    url: readUrl(variables),
    headers: { ...readHeaders(variables, `${GENERAL}HEADERS`), ...readHeaders(variables, `${OF_TRACES}HEADERS`) },
    timeoutMs: readTimeoutMs(variables),
    compression: readCompression(variables),
    tls: { ca: pem('CERTIFICATE'), cert: pem('CLIENT_CERTIFICATE'), key: pem('CLIENT_KEY') },
  };
}

/** The variable that says so; null where neither is set. */
function named(variables: OtelVariables, option: string): string | null {
  return variables.firstGiven([OF_TRACES + option, GENERAL + option]);
}

function readProtocol(variables: OtelVariables): OtlpSettings['protocol'] {
  const name = named(variables, 'PROTOCOL');
  if (name === null) return 'http/protobuf';
  if (variables.given(name)?.toLowerCase() === 'grpc') {
    variables.fault(name, {
      problem: 'gRPC is not spoken here',
      allowed: 'http/protobuf or http/json; a collector takes both, by default on port 4318',
    });
    return 'http/protobuf';
  }
  return variables.oneOf(name, ['http/protobuf', 'http/json']) ?? 'http/protobuf';
}

function readUrl(variables: OtelVariables): string {
  const name = named(variables, 'ENDPOINT');
  const written = name === null ? null : variables.given(name);
  if (name === null || written === null) return DEFAULT_URL;
  const url = URL.parse(written);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    variables.fault(name, { allowed: 'an address with http:// or https://, such as http://collector:4318' });
    return DEFAULT_URL;
  }
  // The address for all signals is a base; that for traces is the whole.
  if (name.startsWith(OF_TRACES)) return url.href;
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${PATH}`;
  return url.href;
}

function readHeaders(variables: OtelVariables, name: string): Readonly<Record<string, string>> {
  const headers = variables.pairs(name, { secret: true }) ?? {};
  const isUsable = Object.entries(headers).every(([key, value]) => TOKEN.test(key) && FIELD_VALUE.test(value));
  if (isUsable) return headers;
  variables.fault(name, { allowed: 'names and values that a header field may have', secret: true });
  return {};
}

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^[\t\u0020-\u007e]*$/;

function readTimeoutMs(variables: OtelVariables): number {
  const name = named(variables, 'TIMEOUT');
  const fallbackMs = 10_000;
  return name === null ? fallbackMs : (variables.integer(name, { min: 1, max: 600_000, unit: 'ms' }) ?? fallbackMs);
}

function readCompression(variables: OtelVariables): OtlpSettings['compression'] {
  const name = named(variables, 'COMPRESSION');
  return name === null ? 'none' : (variables.oneOf(name, ['gzip', 'none']) ?? 'none');
}
