/**
 * Checks on every admin request but probes, before anything else reads it. The listener has power over keys and is reachable from a
 * browser on the same machine, so web pages must be kept out: those under a name that resolves to this machine (DNS
 * rebinding), and those that send requests across origins (CSRF). Then the tokens, and what the role of each allows.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { isLoopback } from '../config/formats.ts';
import { addressKey, isInSubnets } from '../keys/client-address.ts';
import { areAnonymous, type NamedToken, OPERATOR_HEADER } from '../config/admin-tokens.ts';
import { OPERATOR_NAME } from '../domain/vocabulary.ts';
import {
  type AdminContext,
  type AdminAccess,
  type AdminMiddleware,
  type AdminOptions,
  callerOf,
  type Endpoint,
} from './endpoint.ts';
import { AdminError } from '../operations/errors.ts';
import { quoted } from '../operations/input.ts';

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
/** Host (RFC 9110, 7.2): a name, an IPv4 address or a bracketed IPv6 address, then perhaps a port. Never user info or a path. */
const HOST_HEADER = /^(?:\[([0-9a-f:.]+)\]|([^\s:@/\\?#[\]]+))(?::[0-9]{1,5})?$/i;

/** Headers of every response, failures included: a browser may show it and do nothing else with it. */
export function securityHeaders(): AdminMiddleware {
  return (ctx, next) => {
    ctx.set({
      'Cache-Control': 'no-store',
      'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
    });
    return next();
  };
}

/**
 * `Host` must be loopback or one of the allowed names (any port). A rebound page always sends the name that it was
 * loaded under, so this is what stops it.
 */
export function hostGuard(allowedHosts: readonly string[]): AdminMiddleware {
  const isOurs = isAllowedHost(allowedHosts);
  return (ctx, next) => {
    const header = ctx.req.headers.host;
    if (isOurs(header ?? '')) return next();
    const names = ['localhost', '127.0.0.0/8', '[::1]', ...new Set(allowedHosts.map(withoutBrackets))].join(', ');
    throw new AdminError(
      403,
      `The Host header ${quoted(header)} is not one of this listener's. Allowed are ${names}, with any port. Use one of them, or configure the name under which the admin listener is reached.`,
      { privateMessage: 'foreign Host' },
    );
  };
}

/** Whether a `Host`, with or without a port, is loopback or one of the allowed names. */
function isAllowedHost(allowedHosts: readonly string[]): (host: string) => boolean {
  const allowed = new Set(allowedHosts.map(withoutBrackets));
  return (host) => {
    const [, address, name] = HOST_HEADER.exec(host) ?? [];
    const hostname = (address ?? name ?? '').toLowerCase();
    return isLoopback(hostname) || allowed.has(hostname);
  };
}

/** The one that the nearest proxy has written; those before it are anyone's. */
function forwardedHost(ctx: AdminContext): string {
  return ctx.get('X-Forwarded-Host').split(',').at(-1)?.trim() ?? '';
}

/** As a browser writes it: in lower case, without the port that the scheme has anyway. */
function originOf(scheme: 'http' | 'https', host: string): string {
  const port = scheme === 'http' ? ':80' : ':443';
  const name = host.toLowerCase();
  return `${scheme}://${name.endsWith(port) ? name.slice(0, -port.length) : name}`;
}

/** A configured name or address without the brackets of IPv6, in lower case. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
}

/**
 * A browser names the source of a request in `Origin` (RFC 6454) and `Sec-Fetch-Site` (W3C Fetch Metadata). Only this
 * listener's own pages pass, and requests that no page made. Tools other than browsers send neither header.
 *
 * A proxy may have changed `Host`, or dropped its port: what one of the trusted proxies says in `X-Forwarded-Host` is this
 * listener's name too, if it is an allowed one.
 */
export function originGuard({
  allowedHosts,
  trustedProxies,
}: Pick<AdminAccess, 'allowedHosts' | 'trustedProxies'>): AdminMiddleware {
  const isOurs = isAllowedHost(allowedHosts);
  return (ctx, next) => {
    const { origin, host = '' } = ctx.req.headers;
    const forwarded = isInSubnets(ctx.req.socket.remoteAddress ?? '', trustedProxies) ? forwardedHost(ctx) : '';
    const hosts = [host, ...(isOurs(forwarded) ? [forwarded] : [])];
    // https is own too: the listener may stand behind a proxy that ends TLS, and the hosts have been checked already.
    const own = hosts.flatMap((one) => [originOf('http', one), originOf('https', one)]);
    if (origin !== undefined && !own.includes(origin)) {
      throw new AdminError(
        403,
        `The Origin ${quoted(origin)} is foreign. Only pages of this listener itself (http://${host}) may call it from a browser.`,
        { privateMessage: 'foreign Origin' },
      );
    }
    const site = ctx.get('Sec-Fetch-Site');
    if (site !== '' && site !== 'same-origin' && site !== 'none') {
      throw new AdminError(
        403,
        `Sec-Fetch-Site is ${quoted(site)}: another site made this request. Allowed are same-origin and none. Open the address in the browser's address bar.`,
        { privateMessage: 'foreign Sec-Fetch-Site' },
      );
    }
    return next();
  };
}

/**
 * POST, PUT and PATCH take `application/json` only, which no HTML form can send: uncompressed and in UTF-8 (RFC 8259,
 * 8.1). The endpoint reads the body itself, with its own limit.
 */
export function jsonGuard(): AdminMiddleware {
  return (ctx, next) => {
    if (!METHODS_WITH_BODY.has(ctx.method)) return next();
    const { type, charset } = ctx.request;
    if (type.trim().toLowerCase() !== 'application/json' || !/^(?:utf-8)?$/i.test(charset)) {
      throw new AdminError(
        415,
        `The Content-Type is ${quoted(ctx.req.headers['content-type'])}; ${ctx.method} takes application/json in UTF-8 only. Send the header "Content-Type: application/json".`,
        { privateMessage: 'not JSON' },
      );
    }
    const coding = ctx.get('Content-Encoding');
    if (coding !== '' && coding !== 'identity') {
      throw new AdminError(
        415,
        `The Content-Encoding is ${quoted(coding)}; bodies are taken uncompressed only. Send the body as it is, without that header.`,
        { privateMessage: 'compressed body' },
      );
    }
    return next();
  };
}

/** Who calls if the listener has no tokens. */
const ANONYMOUS = { name: 'anonymous', role: 'admin' } as const;
/** The scheme in any case (RFC 9110, 11.1). The token may be any text without spaces: an operator chose it. */
const BEARER = /^bearer +(\S+) *$/i;
const CHALLENGE = 'Bearer realm="evalgate admin"';

/**
 * Lets nobody pass without a token, if there are any. Wrong tokens are counted per address; a right one is never refused
 * for its address, so that a stranger behind the same proxy cannot lock the operators out.
 */
export function authenticate({ tokens, wrongTokens, addressOf }: AdminAccess): AdminMiddleware {
  let check = tokenCheck(tokens());
  return async (ctx, next) => {
    // A signed call has shown who makes it.
    if (ctx.state.role !== undefined) {
      await next();
      return;
    }
    if (check.tokens !== tokens()) check = tokenCheck(tokens());
    const { operatorOf, isOpen, isNamedByCaller } = check;
    const credentials = ctx.get('Authorization');
    const token = BEARER.exec(credentials)?.[1];
    const known = token === undefined ? null : operatorOf(token);
    const operator = isOpen ? ANONYMOUS : known;
    if (operator === null) {
      const waitSeconds = await wrongTokens.consume(addressKey(addressOf(ctx)));
      throw waitSeconds === null ? unauthenticated(credentials) : tooManyWrongTokens(waitSeconds);
    }
    const claimed = ctx.get(OPERATOR_HEADER);
    ctx.state.who = isNamedByCaller && OPERATOR_NAME.test(claimed) ? claimed : operator.name;
    ctx.state.role = operator.role;
    await next();
  };
}

/** Checks tokens against these. */
function tokenCheck(tokens: readonly NamedToken[]) {
  const known = tokens.map(({ token, ...operator }) => ({ operator, digest: hash('sha256', token, 'buffer') }));
  return {
    tokens,
    isOpen: tokens.length === 0,
    isNamedByCaller: areAnonymous(tokens),
    /**
     * Finds the operator of a token; null for an unknown token. Digests of equal length are compared, all of them even
     * after one was equal, so that neither time nor length reveals anything about a token.
     */
    operatorOf: (presented: string): Omit<NamedToken, 'token'> | null => {
      // Node reads header bytes as Latin-1; taken back to bytes, a token with letters outside ASCII compares as sent.
      const candidate = hash('sha256', Buffer.from(presented, 'latin1'), 'buffer');
      return known.filter(({ digest }) => timingSafeEqual(candidate, digest))[0]?.operator ?? null;
    },
  };
}

function unauthenticated(credentials: string): AdminError {
  const isMissing = credentials === '';
  const finding = isMissing
    ? 'No admin token was given.'
    : 'The Authorization header holds no admin token of this gateway.';
  return new AdminError(401, `${finding} Send one of the tokens of ADMIN_TOKEN as "Authorization: Bearer <token>".`, {
    privateMessage: isMissing ? 'no admin token' : 'unknown admin token',
    headers: { 'WWW-Authenticate': isMissing ? CHALLENGE : `${CHALLENGE}, error="invalid_token"` },
  });
}

function tooManyWrongTokens(waitSeconds: number): AdminError {
  return new AdminError(
    401,
    'Too many requests from this address had no valid admin token. Try again later, or send one of the tokens of ADMIN_TOKEN.',
    {
      privateMessage: 'too many wrong admin tokens',
      headers: { 'WWW-Authenticate': CHALLENGE, 'Retry-After': String(waitSeconds) },
    },
  );
}

/**
 * The endpoints, each only for callers whose role allows it: others get 403. The log has each, the audit one an hour per caller
 * and route.
 */
export function authorized({ audit }: AdminOptions['operations'], endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.map(({ route, handle }) => ({
    route,
    handle: async (ctx) => {
      const { name, role } = callerOf(ctx);
      if (route.roles === null || route.roles.includes(role)) return handle(ctx);
      const target = `${route.method} ${route.path}`;
      await audit.recordHourly({
        who: name,
        action: 'access.refuse',
        target,
        from: null,
        to: { role, needs: route.roles },
      });
      throw new AdminError(
        403,
        `The token of ${name} has the role ${role}, which does not allow ${target}: that takes the role ${route.roles.join(' or ')}. Use a token with such a role.`,
        { privateMessage: `not allowed for the role ${role}` },
      );
    },
  }));
}
