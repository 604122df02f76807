/**
 * Redis servers in containers that testcontainers starts. Each listens at the same port inside and outside, so that its
 * address survives `kill` and `restart`. Servers that know one another share the network of one more container, which
 * publishes the ports of all: 127.0.0.1 is the same place to them and to the test, on Linux and with Docker Desktop.
 */
import { type ContainerRuntimeClient, GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers';
import { connectWhenUp } from './client.ts';
import type { ServerControl, ServerHost, ServerSetup } from './server.ts';

type Container = ReturnType<ContainerRuntimeClient['container']['getById']>;

const CONFIG_FILE = '/redis.conf';
const IS_UP = /Ready to accept connections|Sentinel ID is/;
const START_TIMEOUT_MS = 30_000;

export function openContainerHost(image: string, ports: readonly number[]): ServerHost {
  const containers: Container[] = [];
  const run = async (setup: ServerSetup, published: readonly number[], network?: string): Promise<Container> => {
    const content = [`port ${setup.port}`, 'bind 0.0.0.0', 'protected-mode no', ...setup.config].join('\n');
    const wanted = new GenericContainer(image)
      .withEntrypoint(['redis-server'])
      .withCommand(setup.isSentinel === true ? [CONFIG_FILE, '--sentinel'] : [CONFIG_FILE])
      .withCopyContentToContainer([{ content, target: CONFIG_FILE }])
      .withExposedPorts(...published.map((port) => ({ container: port, host: port })))
      .withWaitStrategy(Wait.forLogMessage(IS_UP))
      .withStartupTimeout(START_TIMEOUT_MS);
    const started = await (network === undefined ? wanted : wanted.withNetworkMode(network)).start();
    const { container } = await getContainerRuntimeClient();
    containers.push(container.getById(started.getId()));
    return container.getById(started.getId());
  };
  let network: Promise<string> | undefined;
  return {
    address: '127.0.0.1',
    launch: async (setup) => {
      if (ports.length === 1) return controlOf(await run(setup, ports), setup.port);
      network ??= run({ port: 6379, config: [] }, ports).then(({ id }) => `container:${id}`);
      return controlOf(await run(setup, [], await network), setup.port);
    },
    close: async () => void (await Promise.all(containers.map(remove))),
  };
}

function controlOf(container: Container, port: number): ServerControl {
  return {
    start: async () => {
      await container.start();
      (await connectWhenUp(`redis://127.0.0.1:${port}`)).disconnect();
    },
    pause: async () => void (await container.pause()),
    resume: async () => void (await container.unpause()),
    kill: async () => {
      if (!(await container.inspect()).State.Running) return;
      await container.kill();
      await container.wait();
    },
    remove: () => remove(container),
  };
}

async function remove(container: Container): Promise<void> {
  await container.remove({ force: true, v: true }).catch((error: unknown) => {
    const isGone = typeof error === 'object' && error !== null && 'statusCode' in error && error.statusCode === 404;
    if (!isGone) throw error;
  });
}
