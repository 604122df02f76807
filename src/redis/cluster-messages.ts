/**
 * The connection for messages of a Cluster. Each node hears what is published at any other, so one connection to one of
 * them is enough; where that node goes, the next try is for another.
 */
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type Cluster, Redis } from 'ioredis';
import type { RedisNode } from './address.ts';
import type { ConnectionOptions } from './options.ts';

/** `options`: of a connection that comes back by itself. `named`: nodes to ask while no others are known. */
export function openMessages(cluster: Cluster, options: ConnectionOptions, named: readonly RedisNode[]): Redis {
  let current: RedisNode | null = null;
  class NodeConnector extends AbstractConnector {
    constructor() {
      super(options.disconnectTimeout ?? 0);
    }

    override connect(): ReturnType<AbstractConnector['connect']> {
      const node = chooseNode(cluster, named);
      const target = { ...node, family: options.family };
      current = node;
      this.connecting = true;
      this.stream = options.tls === undefined ? connectTcp(target) : connectTls({ ...target, ...options.tls });
      this.stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      return Promise.resolve(this.stream);
    }
  }
  const messages = new Redis({ ...options, Connector: NodeConnector });
  // A node that left the Cluster may live on, and hear nothing of it any more.
  cluster.on('-node', ({ options: { host, port } }: Redis) => {
    if (host === current?.host && port === current?.port) messages.disconnect(true);
  });
  return messages;
}

/** One that answers where there is one: any of them, so that not all processes listen at the same node. */
function chooseNode(cluster: Cluster, named: readonly RedisNode[]): RedisNode {
  const known = cluster.nodes('master');
  const answering = known.filter(({ status }) => status === 'ready');
  const nodes = (answering.length > 0 ? answering : known).map(({ options: { host = '', port = 0 } }) => ({
    host,
    port,
  }));
  const all = nodes.length > 0 ? nodes : named;
  const chosen = all[Math.floor(Math.random() * all.length)];
  if (chosen === undefined) throw new RangeError('An address names one node at least.');
  return chosen;
}
