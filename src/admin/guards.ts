/**
 * Checks on every admin request before anything else reads it. The listener has power over keys and is reachable from a
 * browser on the same machine, so web pages must be kept out: those under a name that resolves to this machine (DNS
 * rebinding), and those that send requests across origins (CSRF).
 */
import type { AdminMiddleware } from './context.ts';
import { AdminError } from './errors.ts';
import { isLoopback } from '../config/formats.ts';
import { bare, hostnameOf, isAddress } from './host.ts';

/** Health probes, which orchestrators send without a token and to any address. */
const PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz']);
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

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
 * loaded under, so this is what stops it. Probes may also come with any bare address: a kubelet sends the address of
 * the pod, which nobody can configure beforehand, and a rebound page cannot have an address as its host.
 */
export function hostGuard(allowedHosts: readonly string[]): AdminMiddleware {
  const allowed = new Set(allowedHosts.map(bare));
  return (ctx, next) => {
    const header = ctx.req.headers.host;
    const hostname = hostnameOf(header);
    const passes =
      hostname !== null &&
      (isLoopback(hostname) || allowed.has(hostname) || (PROBES.has(ctx.path) && isAddress(hostname)));
    if (!passes) {
      const names = ['localhost', '127.0.0.0/8', '[::1]', ...allowed].join(', ');
      throw new AdminError(
        403,
        `The Host header ${quoted(header)} is not one of this listener's. Allowed are ${names}, with any port. Use one of them, or configure the name under which the admin listener is reached.`,
        { privateMessage: 'foreign Host' },
      );
    }
    return next();
  };
}

/**
 * A browser names the source of a request in `Origin` (RFC 6454) and `Sec-Fetch-Site` (W3C Fetch Metadata). Only this
 * listener's own pages pass, and requests that no page made. Tools other than browsers send neither header.
 */
export function originGuard(): AdminMiddleware {
  return (ctx, next) => {
    const { origin, host } = ctx.req.headers;
    if (origin !== undefined && !isOwnOrigin(origin, host)) {
      throw new AdminError(
        403,
        `The Origin ${quoted(origin)} is foreign. Only pages of this listener itself (http://${host ?? ''}) may call it from a browser.`,
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

/** https is own too: the listener may stand behind a proxy that ends TLS, and the host has been checked already. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  const own = (host ?? '').toLowerCase();
  return origin === `http://${own}` || origin === `https://${own}`;
}

/**
 * POST, PUT and PATCH take `application/json` only, which no HTML form can send: uncompressed and in UTF-8 (RFC 8259,
 * 8.1). The endpoint reads the body itself, with its own limit.
 */
export function jsonGuard(): AdminMiddleware {
  return (ctx, next) => {
    if (METHODS_WITH_BODY.has(ctx.method)) {
      const [type, ...parameters] = ctx.get('Content-Type').toLowerCase().split(';');
      const charset = parameters
        .map((parameter) => parameter.trim())
        .find((parameter) => parameter.startsWith('charset='));
      if (type?.trim() !== 'application/json' || !isUtf8(charset)) {
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
    }
    return next();
  };
}

function isUtf8(charset: string | undefined): boolean {
  return charset === undefined || charset === 'charset=utf-8' || charset === 'charset="utf-8"';
}

/** A header's value as shown to the caller: never longer than a line. */
function quoted(value: string | undefined): string {
  return value === undefined ? '(none)' : JSON.stringify(value.slice(0, 100));
}
