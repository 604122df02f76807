/** A failed admin request: one class, and the one middleware that renders it. */
import type { AdminLog, AdminMiddleware } from './context.ts';
import { KeyStateError, RegistryUnavailableError } from '../keys/key.ts';
import { InvalidKeyError } from '../keys/schema.ts';

/**
 * A refusal. `publicMessage` goes to the caller and says what was given, what is allowed and what to do;
 * `message` goes to the log and holds nothing that a caller sent, since that could be a secret in the wrong place.
 */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  readonly status: number;
  readonly publicMessage: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    publicMessage: string,
    details: { privateMessage: string; headers?: Readonly<Record<string, string>> },
  ) {
    super(details.privateMessage);
    this.status = status;
    this.publicMessage = publicMessage;
    this.headers = details.headers ?? {};
  }
}

/** The refusal that any thrown value amounts to. */
function asAdminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof KeyStateError) {
    return new AdminError(409, error.message, { privateMessage: 'the state of the key forbids it' });
  }
  if (error instanceof InvalidKeyError) {
    return new AdminError(400, error.message, { privateMessage: 'the registry does not take such a key' });
  }
  if (error instanceof RegistryUnavailableError) {
    return new AdminError(
      503,
      'The key registry cannot be asked at the moment. GET /readyz tells which dependency is down; try again when it is back.',
      { privateMessage: `the key registry is unavailable: ${error.message}` },
    );
  }
  return new AdminError(500, 'The gateway failed in an unexpected way. Its log says why.', {
    privateMessage: 'unexpected failure',
  });
}

/** Renders whatever was thrown further in: the only place that sets a failure's status. */
export function errorHandler(log: AdminLog): AdminMiddleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asAdminError(thrown);
      ctx.status = error.status;
      ctx.set({ ...error.headers });
      ctx.body = { error: { message: error.publicMessage } };
      const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
      // Never the path, which may hold anything: a token pasted in the wrong place, for instance.
      const fields = {
        method: ctx.method,
        route: ctx.state.route,
        status: error.status,
        who: ctx.state.who,
        reason: error.message,
      };
      if (error.status >= 500) log.error({ ...fields, err: thrown }, 'admin request failed');
      else if (!isRead || error.status === 401 || error.status === 403) log.warn(fields, 'admin request refused');
    }
  };
}
