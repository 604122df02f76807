/** A gateway that is sent whatever there is, by two tenants, and watched for everything that must not come of it. */
import { Agent } from 'node:http';
import { ENDPOINTS, TEXTS } from '../http/common/endpoints.ts';
import { type Reply, startTestGateway, type TestGateway } from './gateway.ts';
import { putMarkedEvaluation, putMarkedScorecard, shownBy } from './marked-records.ts';
import { WORKSPACE_A, WORKSPACE_B } from './records.ts';
import { isOfTemplate } from './store-templates.ts';

const UNLIMITED = 1_000_000_000;
/** By how much each request moves the time on, so that copies grow old. */
const REQUEST_MS = 50;
const AT_ONCE = 16;
const MAX_FAULTS = 5;
const IDS = 5;

interface Tenant {
  readonly workspaceId: string;
  /** In each of its records. */
  readonly marker: string;
  readonly ids: readonly string[];
  /** UUIDs, as v1 wants them. */
  readonly scorecardIds: readonly string[];
}

export const TENANTS: readonly Tenant[] = [
  tenant(WORKSPACE_A, 'tenant-alpha', '0a'),
  tenant(WORKSPACE_B, 'tenant-beta', '0b'),
];

function tenant(workspaceId: string, marker: string, prefix: string): Tenant {
  const indexes = Array.from({ length: IDS }, (_, index) => index);
  return {
    workspaceId,
    marker,
    ids: indexes.map((index) => `ev_${prefix}_${index}`),
    scorecardIds: indexes.map((index) => `${prefix}000000-0000-4000-8000-00000000000${index}`),
  };
}

export interface Input {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class InputsWorld {
  readonly gateway: TestGateway;
  readonly faults: string[] = [];
  readonly statuses = new Map<number, number>();
  readonly #keys: readonly string[];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  #sent = 0;

  private constructor(gateway: TestGateway, keys: readonly string[]) {
    this.gateway = gateway;
    this.#keys = keys;
  }

  static async start(): Promise<InputsWorld> {
    const gateway = await startTestGateway({ env: { TRUSTED_PROXIES: '127.0.0.1/32', LOG_LEVEL: 'error' } });
    const keys: string[] = [];
    for (const { workspaceId } of TENANTS) {
      keys.push(await gateway.issueKey({ workspaceIds: [workspaceId], perMinute: UNLIMITED, perHour: UNLIMITED }));
    }
    for (const { workspaceId, marker, ids, scorecardIds } of TENANTS) {
      for (const [index, id] of ids.entries()) {
        const scorecardId = scorecardIds[index] ?? '';
        putMarkedEvaluation(gateway.store, { id, workspaceId, marker, scorecardId });
        putMarkedScorecard(gateway.store, { id: scorecardId, workspaceId, marker });
      }
    }
    return new InputsWorld(gateway, keys);
  }

  /** Sends all of them, each by one of the tenants in turn, some at a time. */
  async send(inputs: readonly Input[]): Promise<void> {
    const left = [...inputs];
    const work = async (): Promise<void> => {
      for (let input = left.pop(); input !== undefined && this.faults.length < MAX_FAULTS; input = left.pop()) {
        await this.#send(input);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    this.#checkStore();
  }

  async sendRaw(bytes: string): Promise<void> {
    const { status, body } = await this.gateway.raw(Buffer.from(bytes, 'latin1'));
    this.#count(status);
    if (status >= 500) this.#fault(`${JSON.stringify(bytes.slice(0, 100))}: ${status} ${body.slice(0, 100)}`);
    this.#checkStore();
  }

  get key(): string {
    return this.#keys[0] ?? '';
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    await this.gateway.close();
  }

  async #send({ path, headers = {} }: Input): Promise<void> {
    this.#sent += 1;
    const index = this.#sent % TENANTS.length;
    const own = { authorization: `Bearer ${this.#keys[index]}` };
    this.gateway.clock.advance(REQUEST_MS);
    try {
      const reply = await this.gateway.get(path, {
        headers: { ...own, ...headers },
        agent: this.#agent,
        isUndocumented: ({ text }) => text.includes(TEXTS.noAddress),
      });
      this.#count(reply.status);
      this.#check(path, reply, index);
    } catch (error) {
      this.#fault(error instanceof Error ? error.message : String(error));
    }
  }

  #check(path: string, reply: Reply, index: number): void {
    const { status, text, headers } = reply;
    const shown = shownBy(path, reply);
    const others = TENANTS.filter((_, other) => other !== index);
    if (status >= 500) this.#fault(`${path}: ${status} ${text.slice(0, 200)}`);
    if (others.some(({ marker }) => shown.includes(marker))) this.#fault(`${path} shows another tenant's record`);
    if (headers['x-injected'] !== undefined || headers['set-cookie'] !== undefined) this.#fault(`${path}: injected`);
  }

  #checkStore(): void {
    for (const { method, path } of this.gateway.store.requests.splice(0)) {
      const asked = new URL(path, 'http://x').searchParams.getAll('workspaceId');
      // One tenant has one workspace, so a list is of one.
      if (method !== 'GET' || !isOfTemplate(path) || asked.length > 1)
        this.#fault(`the store was asked ${method} ${path}`);
    }
  }

  #count(status: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }

  #fault(text: string): void {
    if (this.faults.length < MAX_FAULTS) this.faults.push(text);
  }
}

/** The path of every endpoint with existing records of each tenant. */
export function knownPaths(): readonly string[] {
  return TENANTS.flatMap(({ workspaceId, ids, scorecardIds }) =>
    ENDPOINTS.map((endpoint) => endpoint.path({ workspaceId, id: ids[0] ?? '', scorecardId: scorecardIds[0] ?? '' })),
  );
}
