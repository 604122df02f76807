/** Settings of the two listeners: the public API's and the admin's. */
import { z } from 'zod';
import { host, hostNames, networks } from './addresses.ts';
import { duration, integer, optional, port } from './kinds.ts';
import { SECOND, secret, setting } from './setting.ts';
import { adminTokens } from './tokens.ts';

export const serverSettings = z.strictObject({
  host: setting(host(), {
    env: 'HOST',
    initial: '127.0.0.1',
    does: 'Address that the public API listens on. `0.0.0.0` or `::` to be reached from other machines.',
  }),
  port: setting(port(), { env: 'PORT', initial: 8080, does: 'Port of the public API.' }),
  trustedProxies: setting(networks(), {
    env: 'TRUSTED_PROXIES',
    initial: [],
    does: "Networks of the proxies in front, whose `X-Forwarded-For` is believed. Set it to your balancer's; never to networks that clients are in.",
  }),
  drainDelay: setting(duration(0, 600 * SECOND), {
    env: 'DRAIN_DELAY',
    initial: '2s',
    does: 'How long after SIGTERM new requests are still accepted, so that balancers can notice. Longer than their check interval.',
  }),
  maxConnections: setting(integer(1, 1_000_000), {
    env: null,
    initial: 10_000,
    does: 'Most connections of clients that a process holds open; further ones are closed at once. Below the limit on open files.',
  }),
  maxConnectionsPerAddress: setting(optional(integer(1, 1_000_000)), {
    env: null,
    initial: null,
    does: 'The same for the connections of one address; without it there is no such limit. Not behind a balancer, which is one address.',
  }),
  maxInFlight: setting(integer(1, 100_000), {
    env: null,
    initial: 1000,
    does: 'Most requests that a process works on at a time; further ones are refused early, with 500 and `Retry-After`. Lower it where memory is scarce.',
  }),
  workers: setting(integer(1, 256), {
    env: 'WORKERS',
    initial: 1,
    does: 'Processes that serve, beside one that keeps them running; more than one needs Redis. Set it to the number of cores that are to be used; each has a cache memory of its own.',
  }),
});

export const adminSettings = z.strictObject({
  host: setting(host(), {
    env: 'ADMIN_HOST',
    initial: '127.0.0.1',
    does: 'Address of the admin listener. Anything but a loopback address demands an admin token.',
  }),
  port: setting(port(), { env: 'ADMIN_PORT', initial: 8081, does: 'Port of the admin listener.' }),
  maxConnectionsPerAddress: setting(integer(1, 1_000_000), {
    env: null,
    initial: 100,
    does: 'Most connections of one address that the admin listener holds open; further ones are closed at once. More only if all probes and operators come through one proxy.',
  }),
  token: secret(adminTokens(), {
    env: 'ADMIN_TOKEN',
    does: 'The admin listener answers only to these tokens; the name of a token goes into the audit.',
  }),
  allowedHosts: setting(hostNames(), {
    env: 'ADMIN_ALLOWED_HOSTS',
    initial: [],
    does: 'Names and addresses, besides loopback ones, by which the admin listener may be addressed. Add those under which operators and Prometheus reach it.',
  }),
});
