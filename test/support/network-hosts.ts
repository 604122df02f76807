/**
 * Hosts of a network that a test makes and removes: a network namespace each, joined by a router in a namespace of its own,
 * which the test itself is joined to as well. Packets between two hosts can be dropped at the router, in one direction or
 * both: senders notice nothing but silence. Linux only, as root, with `ip` and `tc` of iproute2.
 *
 *     const network = await NetworkHosts.make(['a', 'b', 'c']);
 *     spawn(...network.host('a').through, 'redis-server', ...)
 *     await network.cut('a', 'b');
 *     await network.heal();
 *     await network.close();
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { programOnPath } from './process.ts';

const run = promisify(execFile);
/** The test's own end of its link; the router's is the one before. */
const HOME = 254;

export interface NetworkHost {
  readonly name: string;
  readonly address: string;
  /** The prefix of a command that is to run there. */
  readonly through: readonly string[];
}

export class NetworkHosts {
  /** Where hosts reach the test. */
  readonly homeAddress: string;
  readonly #prefix: string;
  readonly #net: string;
  readonly #hosts = new Map<string, NetworkHost>();
  readonly #cuts = new Set<string>();
  #lossPercent = 0;

  private constructor(prefix: string, net: string) {
    this.#prefix = prefix;
    this.#net = net;
    this.homeAddress = addressIn(net, HOME);
  }

  /** Why none can be made here; null if they can. */
  static async trouble(): Promise<string | null> {
    if (process.getuid?.() !== 0) return 'network namespaces need root';
    if (programOnPath('ip') === null) return 'there is no ip (package iproute2)';
    const probe = `eg${process.pid}p`;
    try {
      await run('ip', ['netns', 'add', probe]);
      await run('ip', ['-n', probe, 'rule', 'add', 'from', '192.0.2.1', 'to', '192.0.2.2', 'blackhole']);
      return null;
    } catch (error) {
      return `network namespaces cannot be made: ${String(error)}`;
    } finally {
      await run('ip', ['netns', 'del', probe]).catch(() => undefined);
    }
  }

  /** Rejects, and leaves nothing behind, if they cannot be made. */
  static async make(names: readonly string[]): Promise<NetworkHosts> {
    // Two runs at a time have addresses of their own.
    const network = new NetworkHosts(`eg${process.pid}`, `10.${200 + (process.pid % 50)}.${(process.pid >> 6) % 250}`);
    try {
      await network.#addRouter();
      for (const [index, name] of names.entries()) await network.#addHost(name, index + 1);
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  host(name: string): NetworkHost {
    const host = this.#hosts.get(name);
    if (host === undefined) throw new RangeError(`There is no host ${name}.`);
    return host;
  }

  /** Drops all that one sends to the other, until `heal`. */
  async cut(from: string, to: string): Promise<void> {
    const rule = `from ${this.host(from).address} to ${this.host(to).address} blackhole`;
    if (this.#cuts.has(rule)) return;
    this.#cuts.add(rule);
    await this.#atRouter(`rule add ${rule}`);
  }

  async heal(): Promise<void> {
    for (const rule of this.#cuts) await this.#atRouter(`rule del ${rule}`);
    this.#cuts.clear();
  }

  /** Loses so many of the packets between hosts, until `keepAll`; rejects without `iptables`. */
  async lose(percent: number): Promise<void> {
    await this.#lossRule('-A', percent);
    this.#lossPercent = percent;
  }

  async keepAll(): Promise<void> {
    if (this.#lossPercent > 0) await this.#lossRule('-D', this.#lossPercent);
    this.#lossPercent = 0;
  }

  /** Delays and loses what is sent to the host; rejects if the kernel cannot (sch_netem). */
  async slow(name: string, delayMs: number, lossPercent: number): Promise<void> {
    const args = `netns exec ${this.#router} tc qdisc add dev ${this.#linkOf(name)} root netem delay ${delayMs}ms loss ${lossPercent}%`;
    await run('ip', args.split(' '));
  }

  /** Whether `slow` works here. */
  async canSlow(name: string): Promise<boolean> {
    try {
      await this.slow(name, 1, 0);
      await this.hasten(name);
      return true;
    } catch {
      return false;
    }
  }

  async hasten(name: string): Promise<void> {
    await run('ip', ['netns', 'exec', this.#router, 'tc', 'qdisc', 'del', 'dev', this.#linkOf(name), 'root']);
  }

  /** Removes the namespaces, and with them all links. The processes there must have ended. */
  async close(): Promise<void> {
    const { stdout } = await run('ip', ['netns', 'list']);
    const ours = stdout.split('\n').map((line) => line.split(' ')[0] ?? '');
    for (const name of ours.filter((one) => one.startsWith(`${this.#prefix}-`)))
      await run('ip', ['netns', 'del', name]);
  }

  get #router(): string {
    return `${this.#prefix}-router`;
  }

  #linkOf(name: string): string {
    return `${this.#prefix}${name}`;
  }

  async #addRouter(): Promise<void> {
    await run('ip', ['netns', 'add', this.#router]);
    const forward = 'echo 1 > /proc/sys/net/ipv4/ip_forward';
    await run('ip', ['netns', 'exec', this.#router, 'sh', '-c', forward]);
    await this.#atRouter('link set lo up');
    // Removed with the router's end of it.
    const [home, link] = [`${this.#prefix}h`, `${this.#prefix}r`];
    await ip(`link add ${home} type veth peer name ${link} netns ${this.#router}`);
    await this.#atRouter(`addr add ${addressIn(this.#net, HOME - 1)}/30 dev ${link}`);
    await this.#atRouter(`link set ${link} up`);
    await ip(`addr add ${this.homeAddress}/30 dev ${home}`);
    await ip(`link set ${home} up`);
    await ip(`route add ${this.#net}.0/24 via ${addressIn(this.#net, HOME - 1)}`);
  }

  async #addHost(name: string, index: number): Promise<void> {
    const namespace = `${this.#prefix}-${name}`;
    const [atRouter, atHost] = [addressIn(this.#net, 4 * index + 1), addressIn(this.#net, 4 * index + 2)];
    const link = this.#linkOf(name);
    await run('ip', ['netns', 'add', namespace]);
    await ip(`-n ${this.#router} link add ${link} type veth peer name eth0 netns ${namespace}`);
    await this.#atRouter(`addr add ${atRouter}/30 dev ${link}`);
    await this.#atRouter(`link set ${link} up`);
    for (const command of [
      'link set lo up',
      `addr add ${atHost}/30 dev eth0`,
      'link set eth0 up',
      `route add default via ${atRouter}`,
    ]) {
      await ip(`-n ${namespace} ${command}`);
    }
    this.#hosts.set(name, { name, address: atHost, through: ['ip', 'netns', 'exec', namespace] });
  }

  async #lossRule(action: '-A' | '-D', percent: number): Promise<void> {
    const rule = `-m statistic --mode random --probability ${percent / 100} -j DROP`;
    await ip(`netns exec ${this.#router} iptables ${action} FORWARD ${rule}`);
  }

  async #atRouter(command: string): Promise<void> {
    await ip(`-n ${this.#router} ${command}`);
  }
}

function addressIn(net: string, last: number): string {
  return `${net}.${last}`;
}

async function ip(command: string): Promise<void> {
  await run('ip', command.split(' '));
}
