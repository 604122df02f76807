/** GET /api/fleet: the processes that serve together. */
import type { Instances } from '../redis/instances.ts';
import type { Endpoint } from './endpoint.ts';

export function fleetEndpoint(members: Pick<Instances, 'id' | 'list'>): Endpoint {
  return {
    method: 'GET',
    path: '/api/fleet',
    what: 'the processes that serve together, and how each of them is',
    handle: async (ctx) => {
      ctx.body = {
        members: members.list().map(({ id, host, pid, version, startedAtMs, status }) => ({
          id,
          host,
          pid,
          version,
          startedAt: new Date(startedAtMs).toISOString(),
          status,
          self: id === members.id,
        })),
      };
    },
  };
}
