/**
 * Calls the admin listener of a running gateway. The routes with their schemas, and HTTP, are loaded by the first call, since
 * the help needs neither.
 */
import type { Command } from 'commander';
import type { z } from 'zod';
import { OPERATOR_NAME, OPERATOR_NAME_FORM } from '../domain/vocabulary.ts';
import type { ReadonlyDeep } from '../operations/answers.ts';
import type { AdminRoute, ROUTES } from '../operations/api.ts';
import type { DirectResponse } from './direct-fetch.ts';
import {
  CliError,
  type CommandTexts,
  makeCommand,
  matching,
  parseJson,
  parser,
  print,
  secretFrom,
  wrongCall,
} from './command.ts';
import { systemCode } from '../log/error.ts';

const TIMEOUT_MS = 15_000;
/** For answers of any length. */
const LINES_TIMEOUT_MS = 900_000;

/** A route that answers with JSON. T: its answer; B: its body, as it is sent. */
interface JsonRoute<T, B> extends AdminRoute {
  readonly body?: (nowMs: number | null) => z.ZodType<unknown, B>;
  readonly answer: z.ZodType<T>;
}

/** Chooses a route. */
type Choose<R> = (routes: typeof ROUTES) => R;

/** The parts of a route that a call fills in. */
interface CallParts<B> {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: URLSearchParams;
  readonly body?: ReadonlyDeep<NoInfer<B>>;
  /** How long the answer may take. */
  readonly timeoutMs?: number;
}

/** A call that failed: the finding, and what to do about it if that is known. */
export class AdminCallError extends CliError {
  readonly status: number | 'unreachable' | 'timeout';
  readonly finding: string;
  readonly advice: string | null;

  constructor(status: AdminCallError['status'], finding: string, advice: string | null) {
    super(advice === null ? finding : `${finding}\n${advice}`);
    this.status = status;
    this.finding = finding;
    this.advice = advice;
  }
}

/** The advice if something else answers at the address. */
export const ADDRESS_ADVICE = 'Give the address of the admin listener with --admin URL.';
const START_ADVICE =
  'This command acts through a running gateway. Start one with `evalgate serve` (in a checkout: `npm start`), or give the address of one with --admin URL or EVALGATE_ADMIN_URL.';

const BASE_FORM = 'an http:// or https:// address, such as http://127.0.0.1:8081';
const baseOf = (text: string): string | null =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text.replace(/\/+$/, '') : null;
export const parseBase = parser(baseOf, BASE_FORM);

const parseOperator = matching(OPERATOR_NAME, `a name: ${OPERATOR_NAME_FORM}`);

const ADMIN_URL = 'EVALGATE_ADMIN_URL';

/** A command that acts on a running gateway, with `--admin URL` and `--as NAME`. */
export function adminCommand(texts: CommandTexts): Command {
  const otherwise = `(default: ${ADMIN_URL}, else ${nearbyAddress()})`;
  return makeCommand(texts)
    .option('--admin <url>', `address of the admin listener ${otherwise}`, parseBase)
    .option('--as <name>', 'who acts: its token of ADMIN_TOKEN is used, and the audit has the name', parseOperator)
    .addHelpText(
      'after',
      '\nThe token of the admin listener is read from ADMIN_TOKEN or the file named by ADMIN_TOKEN_FILE, and --as from\nEVALGATE_OPERATOR if it is not given.',
    );
}

/** The address of a gateway on this machine. It follows ADMIN_PORT, so that one environment serves the gateway and its commands. */
function nearbyAddress(): string {
  const port = process.env['ADMIN_PORT'] ?? '';
  return `http://127.0.0.1:${/^[1-9]\d{0,4}$/.test(port) ? port : '8081'}`;
}

/** Throws CliError for a variable that holds no address. */
export function adminAddress(command: Command): {
  readonly base: string;
  /** Whether `--admin` gave it. */
  readonly isGiven: boolean;
  /** Whether it is that of a gateway on this machine with this environment, wherever it comes from. */
  readonly isNearby: boolean;
} {
  const { admin } = command.opts<{ admin?: string }>();
  const base = admin ?? namedAddress() ?? nearbyAddress();
  return { base, isGiven: admin !== undefined, isNearby: base === nearbyAddress() };
}

function namedAddress(): string | null {
  const named = process.env[ADMIN_URL] ?? '';
  if (named === '') return null;
  const base = baseOf(named);
  if (base === null) throw wrongCall(`${ADMIN_URL} is no address. Allowed: ${BASE_FORM}.`);
  return base;
}

/** Who acts, as `--as` or EVALGATE_OPERATOR has it; null if neither does. Throws CliError for a name that is none. */
export function operatorOf(command: Command): string | null {
  const { as = process.env['EVALGATE_OPERATOR'] ?? '' } = command.opts<{ as?: string }>();
  if (as === '' || OPERATOR_NAME.test(as)) return as || null;
  throw wrongCall(`EVALGATE_OPERATOR is no name. Allowed: ${OPERATOR_NAME_FORM}.`);
}

/** The token of that name, or the first. If no token has a name, the listener takes the caller's word for it. */
async function readToken(operator: string | null): Promise<string | null> {
  const { areAnonymous, parseAdminTokens } = await import('../config/admin-tokens.ts');
  return secretFrom('ADMIN_TOKEN', (written) => {
    const tokens = parseAdminTokens(written);
    const isAny = operator === null || areAnonymous(tokens);
    const found = isAny ? tokens[0] : tokens.find(({ name }) => name === operator);
    if (found !== undefined || isAny) return found?.token ?? null;
    throw new Error(
      `it has no token of ${operator}, whom --as or EVALGATE_OPERATOR names; it has ${tokens.map(({ name }) => name).join(', ')}`,
    );
  });
}

/**
 * Calls the route of the listener that `--admin` names, with the token of who acts, else the first of ADMIN_TOKEN: the audit
 * records its name. Rejects with CliError, which says what to do.
 */
export async function callAdmin<T, B>(
  command: Command,
  route: Choose<JsonRoute<T, B>>,
  parts: CallParts<B> = {},
): Promise<T> {
  return (await exchange(command, route, parts)).answer;
}

/** Calls the listener and prints the answer: as it came with `--json`, else as text. */
export async function callAndPrint<T, B>(
  command: Command,
  route: Choose<JsonRoute<T, B>>,
  text: (answer: T) => string,
  parts: CallParts<B> = {},
): Promise<void> {
  const { answer, document } = await exchange(command, route, parts);
  print(command, document, text(answer));
}

/** A command that calls one route and prints the answer. */
export function routeCommand<T, B>(
  texts: CommandTexts,
  route: Choose<JsonRoute<T, B>>,
  text: (answer: T) => string,
): Command {
  return adminCommand(texts).action((_options, command: Command) => callAndPrint(command, route, text));
}

/** `document` has everything that came, also what only a newer listener knows. */
async function exchange<T, B>(
  command: Command,
  choose: Choose<JsonRoute<T, B>>,
  parts: CallParts<B>,
): Promise<{ readonly document: unknown; readonly answer: T }> {
  const { ROUTES } = await import('../operations/api.ts');
  const route = choose(ROUTES);
  const { base, response } = await request(command, route, parts);
  const text = await wholeText(base, response);
  const document = parseJson(text);
  // A gateway that is not ready answers with its readiness and status 503.
  const parsed = route.answer.safeParse(document);
  if (parsed.success) return { document, answer: parsed.data };
  throw await refusalOf(base, response.status, document);
}

/**
 * Calls a route that answers JSON lines, and passes each on as it comes. Rejects with CliError, also if the answer breaks off.
 */
export async function* callForLines(command: Command, choose: Choose<AdminRoute>): AsyncGenerator {
  const { ROUTES } = await import('../operations/api.ts');
  const { base, response } = await request(command, choose(ROUTES), { timeoutMs: LINES_TIMEOUT_MS });
  if (response.status !== 200) throw await refusalOf(base, response.status, parseJson(await wholeText(base, response)));
  let rest = '';
  for await (const chunk of textOf(base, response)) {
    const [first = '', ...others] = chunk.split('\n');
    rest += first;
    for (const next of others) {
      yield lineOf(base, rest);
      rest = next;
    }
  }
  if (rest !== '') yield lineOf(base, rest);
}

function lineOf(base: string, line: string): unknown {
  const parsed = parseJson(line);
  if (parsed === undefined) throw new AdminCallError(200, notAListener(base, ''), ADDRESS_ADVICE);
  return parsed;
}

async function* textOf(base: string, response: DirectResponse): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body) yield decoder.decode(chunk, { stream: true });
  } catch (error) {
    throw noAnswer(base, error);
  }
}

async function wholeText(base: string, response: DirectResponse): Promise<string> {
  let text = '';
  for await (const chunk of textOf(base, response)) text += chunk;
  return text;
}

async function request<B>(
  command: Command,
  { method, path }: Pick<AdminRoute, 'method' | 'path'>,
  { params = {}, query = new URLSearchParams(), body, timeoutMs = TIMEOUT_MS }: CallParts<B>,
): Promise<{ readonly base: string; readonly response: DirectResponse }> {
  const { base } = adminAddress(command);
  const operator = operatorOf(command);
  const token = await readToken(operator);
  const { OPERATOR_HEADER } = await import('../config/admin-tokens.ts');
  const { directFetch } = await import('./direct-fetch.ts');
  const place = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  try {
    const response = await directFetch(`${base}${place}${query.size === 0 ? '' : `?${query.toString()}`}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(operator === null ? {} : { [OPERATOR_HEADER]: operator }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    return { base, response };
  } catch (error) {
    throw noAnswer(base, error);
  }
}

function noAnswer(base: string, error: unknown): AdminCallError {
  const reason = reasonOf(error);
  return new AdminCallError(
    reason === TIMED_OUT ? 'timeout' : 'unreachable',
    `No admin listener answers at ${base} (${reason}).`,
    START_ADVICE,
  );
}

/** The error for an answer that is not as its route declares it. */
async function refusalOf(base: string, status: number, document: unknown): Promise<AdminCallError> {
  const { errorSchema } = await import('../operations/answers.ts');
  const refusal = errorSchema.safeParse(document);
  const isError = status >= 300;
  if (!isError || !refusal.success) {
    const found = isError ? `: status ${status}` : ', or is one of another version';
    return new AdminCallError(status, notAListener(base, found), ADDRESS_ADVICE);
  }
  const tokenAdvice = 'Set ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.';
  return new AdminCallError(status, inOurWords(refusal.data.error.message), status === 401 ? tokenAdvice : null);
}

function notAListener(base: string, found: string): string {
  return `The server at ${base} is not an admin listener of evalgate${found}.`;
}

/** Refusals name endpoints and parameters of the listener, for which the command line has commands and options. */
const WORDS = [
  ['GET /api/keys lists', '`evalgate keys list` shows'],
  [
    'Give keyId (the id of a key) or workspace (a UUID; repeat it for more) as well.',
    'Name a key of the registry with --key-id ID, or workspaces with --workspace UUID (repeat it for more).',
  ],
  ['with that keyId', 'with the id of --key-id'],
  ['give its workspaces instead', 'name its workspaces with --workspace UUID instead'],
] as const;

/** A refusal in the words of the command line. */
function inOurWords(refusal: string): string {
  return WORDS.reduce((text, [theirs, ours]) => text.replace(theirs, ours), refusal);
}

const TIMED_OUT = 'no answer in time';

/** Codes of Node.js and undici for a connection that the other side closed. */
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const LATE: ReadonlySet<string> = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Why fetch() got no whole response: in words, or the code of the system's error if there is one. */
export function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') return TIMED_OUT;
  const code = systemCode(error instanceof Error ? error.cause : null) ?? systemCode(error) ?? 'the connection failed';
  if (LATE.has(code)) return TIMED_OUT;
  return CLOSED.has(code) ? 'it closed the connection before the answer was whole' : code;
}
