/** Calls the admin listener of a running gateway. */
import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { parseAdminTokens } from '../config/formats.ts';
import { CliError, parseJson, print, secretFrom } from './command.ts';

const TIMEOUT_MS = 15_000;
const errorSchema = z.object({ error: z.object({ message: z.string() }) });

export interface AdminRequest<T> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** The schema of a success. */
  readonly answer: z.ZodType<T>;
}

/** A call that failed: the finding, and what to do about it if that is known. */
export class AdminCallError extends CliError {
  readonly finding: string;
  readonly advice: string | null;
  /** Null if there was no response, or none of an admin listener. */
  readonly status: number | null;

  constructor(finding: string, advice: string | null, status: number | null = null) {
    super([finding, ...(advice === null ? [] : [advice])].join(status === null ? ' ' : '\n'));
    this.finding = finding;
    this.advice = advice;
    this.status = status;
  }
}

/** What to do if something else answers at the address. */
export const ADDRESS_ADVICE = 'Give the address of the admin listener with --admin URL.';

/** Adds `--admin URL`. Its default follows ADMIN_PORT, so that one environment serves the gateway and its commands. */
export function withAdminOption(command: Command): Command {
  const port = /^[1-9]\d{0,4}$/.test(process.env['ADMIN_PORT'] ?? '') ? process.env['ADMIN_PORT'] : '8081';
  return command
    .option('--admin <url>', 'address of the admin listener', parseBase, `http://127.0.0.1:${port}`)
    .addHelpText(
      'after',
      '\nThe admin listener takes its token from ADMIN_TOKEN or the file named by ADMIN_TOKEN_FILE.',
    );
}

function parseBase(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, '');
  throw new InvalidArgumentError('Allowed: an http:// or https:// address, such as http://127.0.0.1:8081.');
}

/** The address of the admin listener, and whether `--admin` gave it. */
export function adminAddress(command: Command): { readonly base: string; readonly isGiven: boolean } {
  const { admin } = command.opts<{ admin: string }>();
  return { base: admin, isGiven: command.getOptionValueSource('admin') === 'cli' };
}

/**
 * Calls the listener of the command's `--admin`, with the first token of ADMIN_TOKEN: the audit records its name. Throws
 * CliError, which says what to do.
 */
export async function callAdmin<T>(command: Command, { method, path, body, answer }: AdminRequest<T>): Promise<T> {
  const { base } = adminAddress(command);
  const token = secretFrom('ADMIN_TOKEN', (written) => parseAdminTokens(written)?.[0]?.token ?? null);
  const response = await send(base + path, {
    method,
    headers: {
      accept: 'application/json',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    // A redirect would carry the token to wherever it points.
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    throw new AdminCallError(
      `No admin listener answers at ${base} (${reasonOf(error)}).`,
      'Start the gateway with `npm start`, or give the address with --admin URL.',
    );
  });
  const content = parseJson(response.text);
  if (!response.ok) throw refusal(response.status, content, base);
  const parsed = answer.safeParse(content);
  if (parsed.success) return parsed.data;
  throw new AdminCallError(
    `What answers at ${base} is not an admin listener of evalgate, or of another version.`,
    ADDRESS_ADVICE,
  );
}

/** Calls the listener and prints the answer: as it is with `--json`, else as text. */
export async function callAndPrint<T>(
  command: Command,
  request: AdminRequest<T>,
  text: (answer: T) => string,
): Promise<void> {
  const document = await callAdmin(command, request);
  print(command, document, text(document));
}

async function send(
  url: string,
  init: RequestInit,
): Promise<{ readonly ok: boolean; readonly status: number; readonly text: string }> {
  const response = await fetch(url, init);
  return { ok: response.ok, status: response.status, text: await response.text() };
}

function refusal(status: number, content: unknown, base: string): AdminCallError {
  const parsed = errorSchema.safeParse(content);
  if (!parsed.success) {
    return new AdminCallError(
      `What answers at ${base} is not an admin listener of evalgate: status ${status}.`,
      ADDRESS_ADVICE,
    );
  }
  const advice =
    status === 401 ? 'Set ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.' : null;
  return new AdminCallError(parsed.data.error.message, advice, status);
}

/** Why fetch() got no response: the code of the system's error if there is one. */
export function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') return 'no answer in time';
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'the connection failed';
}
