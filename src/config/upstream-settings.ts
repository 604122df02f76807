/** Settings of the way to the evaluation store: where it is, and how much it is asked. */
import { z } from 'zod';
import { httpUrl } from './addresses.ts';
import { duration, integer, optional, size } from './kinds.ts';
import { SECOND, secret, setting } from './setting.ts';
import { upstreamToken } from './tokens.ts';

export const upstreamSettings = z.strictObject({
  url: setting(optional(httpUrl()), {
    env: 'UPSTREAM_URL',
    initial: null,
    does: 'Base address of the evaluation store. Without it the bundled sample store runs, with demo keys.',
  }),
  token: secret(upstreamToken(), {
    env: 'UPSTREAM_TOKEN',
    does: 'Bearer token for the evaluation store. Without it requests to the store carry no `Authorization`.',
  }),
  timeout: setting(duration(1, 300 * SECOND), {
    env: 'UPSTREAM_TIMEOUT',
    initial: '10s',
    does: "How long a call to the store may take in all. Above the store's slowest good answer.",
  }),
  maxResponse: setting(size(1000, 1_000_000_000), {
    env: null,
    initial: '8MB',
    does: "Largest answer of the store that is read, decoded. Above the store's largest transcript, well below the memory.",
  }),
  maxConnections: setting(integer(1, 10_000), {
    env: null,
    initial: 50,
    does: 'Most calls that a process has in flight at the store, and so most connections that it opens. What the store bears, divided by the processes.',
  }),
  maxQueue: setting(integer(0, 100_000), {
    env: null,
    initial: 100,
    does: 'How many calls of a process may wait for their turn at the store; further ones are refused at once. More where bursts are short, fewer where a late answer is no use.',
  }),
  queueTimeout: setting(duration(0, 300 * SECOND), {
    env: null,
    initial: '1s',
    does: 'How long a call may wait for its turn at the store before it is refused. Below `upstream.timeout`, of which the wait is a part.',
  }),
  reservePercent: setting(integer(0, 90), {
    env: null,
    initial: 20,
    does: 'Share of `upstream.maxConnections` that one API key leaves to the others. 0 for a gateway with one consumer.',
  }),
  maxRequestsPerSecond: setting(optional(integer(1, 1_000_000)), {
    env: null,
    initial: null,
    does: 'Most calls a second that all processes together send to the store, with a tenth of it at once after a pause; without it there is no such cap. For stores that have a quota.',
  }),
  retryPercent: setting(integer(0, 100), {
    env: null,
    initial: 10,
    does: 'How many calls may be repeated, as a share of all, where a repetition can succeed. 0 for a store that must never be asked twice.',
  }),
  breakerPercent: setting(optional(integer(1, 100)), {
    env: null,
    initial: 50,
    does: 'Once more than this share of the recent calls (the last 80, of the last 10 s, once there are 10) has failed, the store is left alone, but for one probe a second. Without it calls go on whatever fails. Higher for a store that fails often and is of use all the same.',
  }),
});
