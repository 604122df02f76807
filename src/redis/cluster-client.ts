/** A Cluster as one client: a command rejects at once while the Cluster is not known, and after its time without an answer. */
import { Cluster, type ClusterOptions, type Command } from 'ioredis';
import type { RedisNode } from './address.ts';
import { type CommandListener, timeCommand } from './timed-client.ts';
import { unsentError } from './unsent.ts';

type LegacyOptions = ClusterOptions & { readonly redisOptions?: { readonly replyMapping?: 'legacy' } };
type SendOptions = Parameters<Cluster['sendCommand']> extends [Command, ...infer More] ? More : never;

export interface ClusterAbout {
  readonly commandTimeoutMs: number;
  readonly onCommand: CommandListener | null;
}

export class TimedCluster extends Cluster {
  readonly #about: ClusterAbout;

  constructor(nodes: readonly RedisNode[], options: LegacyOptions, about: ClusterAbout) {
    super(
      nodes.map(({ host, port }) => ({ host, port })),
      options,
    );
    this.#about = about;
  }

  /** Every command passes here once, however often nodes send it on to another. */
  override sendCommand(command: Command, ...more: SendOptions): unknown {
    const { commandTimeoutMs, onCommand } = this.#about;
    // What the client itself asks before it is ready.
    const isOwn = command.name === 'cluster';
    if (!isOwn && this.status !== 'ready') {
      command.reject(unsentError());
      onCommand?.('unsent', 0);
      return command.promise;
    }
    // For all of its way; that of a connection would begin anew with each node.
    command.setTimeout(commandTimeoutMs);
    const sent = super.sendCommand(command, ...more);
    if (onCommand !== null && !isOwn) timeCommand(command, onCommand);
    return sent;
  }
}
