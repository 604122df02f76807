/** The nodes of a Cluster: whether each of them answers, and where they are. */
import { type Cluster, Command, type Redis } from 'ioredis';
import type { RedisNode } from './address.ts';
import { ClusterIncompleteError } from './errors.ts';
import { DROP_AFTER_MS, reasonOf } from './health.ts';
import { trialKeys } from './names.ts';
import { beforeDeadline, PROBE_SLACK_MS } from './request-wait.ts';

interface ClusterProbeOptions {
  /** How long a name may wait for its answer. */
  readonly timeoutMs: number;
  /** Called with the first failure at once. */
  readonly onNodeFailure: (reason: Error) => void;
  /** Called after each probe with the buckets (names.ts) that did not answer in time. */
  readonly onSilent: (buckets: ReadonlySet<number>) => void;
}

/**
 * Asks every primary, and whether all slots are served: what is shared lies in all of them. Then it asks for keys in slots
 * spread over all nodes: a node that has taken over slots is found by its MOVED, as for any command. `greet` is the
 * handshake with a node.
 */
export function clusterProbe(
  cluster: Cluster,
  greet: (node: Redis) => Promise<void>,
  { timeoutMs, onNodeFailure, onSilent }: ClusterProbeOptions,
): () => Promise<void> {
  /** When each node last answered. */
  const answeredAtMs = new WeakMap<Redis, number>();
  const probeNode = async (node: Redis): Promise<void> => {
    try {
      const answer = greet(node).then(() => node.cluster('INFO'));
      const info = await beforeDeadline(answer, timeoutMs + PROBE_SLACK_MS);
      answeredAtMs.set(node, performance.now());
      if (!isComplete(info)) throw new ClusterIncompleteError();
    } catch (error) {
      const lastMs = answeredAtMs.get(node);
      if (lastMs === undefined) answeredAtMs.set(node, performance.now());
      // The Cluster then asks another node who has its slots; without any node a new one is opened.
      else if (performance.now() - lastMs > DROP_AFTER_MS) node.disconnect();
      onNodeFailure(reasonOf(error));
      throw error;
    }
  };
  return async () => {
    // First, since a node that was just found is connected by it.
    const nodes = await Promise.allSettled(cluster.nodes('master').map(probeNode));
    const inTime = (key: string): Promise<number> => beforeDeadline(cluster.exists(key), timeoutMs);
    const keys = await Promise.allSettled(trialKeys('probe').map(inTime));
    onSilent(new Set(keys.flatMap(({ status }, bucket) => (status === 'rejected' ? [bucket] : []))));
    for (const result of [...nodes, ...keys]) if (result.status === 'rejected') throw result.reason;
  };
}

function isComplete(info: string): boolean {
  return info.includes('cluster_state:ok');
}

/** Asks one node on a connection of its own. Rejects if it does not answer. */
type AskNode = <T>(node: RedisNode, ask: (client: Redis) => Promise<T>) => Promise<T>;

/**
 * Why a Cluster can't be opened by these nodes; null if one of them answers and has nothing to report. ioredis keeps to itself
 * what a node says when it is asked for the slots. Never rejects.
 */
export async function findClusterFault(nodes: readonly RedisNode[], ask: AskNode): Promise<Error | null> {
  const look = (node: RedisNode): Promise<Error | null> =>
    ask(node, async (client) => {
      if (!isComplete(await client.cluster('INFO'))) return new ClusterIncompleteError();
      rememberHosts(await client.cluster('SLOTS'), node.host);
      return null;
    });
  const found = await Promise.allSettled(nodes.map(look));
  const faults = found.map((one) => (one.status === 'fulfilled' ? one.value : reasonOf(one.reason)));
  return faults.includes(null) ? null : (faults[0] ?? null);
}

/**
 * Where the nodes are that do not say it (`cluster-preferred-endpoint-type unknown-endpoint`), by their ids: at the host that
 * was asked. A node's id is its own in all Clusters.
 */
const hosts = new Map<string, string>();

/** `slots`: the reply to CLUSTER SLOTS: ranges of a first and a last slot, and nodes as `[host, port, id, ...]`. */
function rememberHosts(slots: unknown, host: string): void {
  const nodes = nodesIn(slots).filter((node) => isUnknown(node[0]));
  if (nodes.length === 0) return;
  for (const node of nodes) hosts.set(String(node[2]), host);
  // Documented for all clients of the process; of other replies nothing changes.
  Command.setReplyTransformer('cluster', withHosts);
}

/** ioredis passes over nodes without a host. One that is not known by its id is where the others of the reply are. */
function withHosts<T>(reply: T): T {
  const nodes = nodesIn(reply).filter((node) => isUnknown(node[0]));
  const known = nodes.map((node) => hosts.get(String(node[2]))).find((host) => host !== undefined);
  for (const node of nodes) node[0] = hosts.get(String(node[2])) ?? known ?? node[0];
  return reply;
}

function isUnknown(host: unknown): boolean {
  return host === null || host === '' || host === '?';
}

function nodesIn(slots: unknown): unknown[][] {
  if (!Array.isArray(slots)) return [];
  return slots.flatMap((range: unknown) =>
    Array.isArray(range)
      ? range.slice(2).filter((node): node is unknown[] => Array.isArray(node) && node.length > 2)
      : [],
  );
}

/** Where a node is that a redirection names by its port only: `MOVED 3999 :6381`. */
export function hostlessNode(key: string, asked: string | undefined): RedisNode | null {
  const port = /^\??:(\d+)$/.exec(key)?.[1];
  return port === undefined || asked === undefined ? null : { host: asked, port: Number(port) };
}
