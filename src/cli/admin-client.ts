/** Calls the admin listener of a running gateway. */
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { readSecret } from '../config/environment.ts';
import { parseAdminTokens } from '../config/formats.ts';
import { CliError } from './errors.ts';
import type { Terminal } from './terminal.ts';

const TIMEOUT_MS = 15_000;
const errorSchema = z.object({ error: z.object({ message: z.string() }) });

export interface AdminRequest<T> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** What a success must hold. */
  readonly answer: z.ZodType<T>;
}

export interface AdminClient {
  /** Throws CliError with what to do about it. */
  call<T>(request: AdminRequest<T>): Promise<T>;
}

/** A call that came to nothing: what was found, and what to do about it where that is known. */
export class AdminCallError extends CliError {
  readonly finding: string;
  readonly advice: string | null;
  /** Of the answer; null where there was none, or not one of an admin listener. */
  readonly status: number | null;

  constructor(finding: string, advice: string | null, status: number | null = null) {
    super([finding, ...(advice === null ? [] : [advice])].join(status === null ? ' ' : '\n'));
    this.finding = finding;
    this.advice = advice;
    this.status = status;
  }
}

/** Adds `--admin URL`. Its default follows ADMIN_PORT, so that one environment serves the gateway and its commands. */
export function withAdminOption(command: Command, { env }: Terminal): Command {
  const port = /^[1-9]\d{0,4}$/.test(env['ADMIN_PORT'] ?? '') ? env['ADMIN_PORT'] : '8081';
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

/** What a line that is offered to be run next has to repeat, so that it reaches the same gateway; empty where nothing. */
export function adminPart(command: Command): string {
  const { admin } = command.opts<{ admin: string }>();
  return command.getOptionValueSource('admin') === 'cli' ? ` --admin ${admin}` : '';
}

/** The client for a command's `--admin` and the environment's token. */
export function adminClientOf(command: Command, { env }: Terminal): AdminClient {
  const { admin } = command.opts<{ admin: string }>();
  return adminClient(admin, adminTokenFrom(env));
}

export function adminClient(base: string, token: string | null): AdminClient {
  return {
    call: async ({ method, path, body, answer }) => {
      const response = await send(base, { method, path, body, token });
      const content = parseJson(response.text);
      if (response.status >= 200 && response.status < 300) {
        const parsed = answer.safeParse(content);
        if (parsed.success) return parsed.data;
        throw new AdminCallError(
          `What answers at ${base} is not an admin listener of evalgate, or of another version.`,
          ADDRESS_ADVICE,
        );
      }
      throw refusal(response.status, content, base);
    },
  };
}

/** What to do where something else answers. */
export const ADDRESS_ADVICE = 'Give the address of the admin listener with --admin URL.';

/** The first token of ADMIN_TOKEN: whoever calls is who comes first. Throws CliError where it cannot be read. */
export function adminTokenFrom(env: Terminal['env']): string | null {
  const reading = readSecret('ADMIN_TOKEN', env, (path) => readFileSync(path, 'utf8'));
  if (reading === null) return null;
  if (!('written' in reading)) {
    throw new CliError(`${reading.name}: given ${reading.given}; ${reading.problem}; allowed: ${reading.allowed}`);
  }
  try {
    const [first] = parseAdminTokens(String(reading.written)) ?? [];
    return first?.token ?? null;
  } catch (error) {
    throw new CliError(`${reading.name}: ${error instanceof Error ? error.message : 'it cannot be read'}`);
  }
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly token: string | null;
}

async function send(base: string, { method, path, body, token }: Sent): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(base + path, {
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
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    const reason = reasonOf(error);
    throw new AdminCallError(
      `No admin listener answers at ${base} (${reason}).`,
      'Start the gateway with `npm start`, or give the address with --admin URL.',
    );
  }
}

/** Why there was no answer: the code of the system's error where there is one. */
export function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') return 'no answer in time';
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'the connection failed';
}

function refusal(status: number, content: unknown, base: string): CliError {
  const parsed = errorSchema.safeParse(content);
  if (!parsed.success) {
    const finding = `What answers at ${base} is not an admin listener of evalgate: status ${status}.`;
    return new AdminCallError(finding, ADDRESS_ADVICE);
  }
  const { message } = parsed.data.error;
  const advice =
    status === 401 ? 'Set ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.' : null;
  return new AdminCallError(message, advice, status);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
