/** Prism in front of a gateway. It forwards every request, and reports deviations from the document in a header. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { listenOnLoopback } from '../support/loopback.ts';
import { freePort } from '../support/loopback.ts';
import { type ApiDocument, toolPath } from './world.ts';

export interface PrismProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** Resolves when Prism listens. Rejects with its log if it ends before. */
export async function startPrism(document: ApiDocument, gatewayUrl: string): Promise<PrismProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-prism-'));
  const file = join(folder, 'openapi.json');
  await writeFile(file, JSON.stringify(withHead(document)));
  const relay = await listenOnLoopback(createServer(relayTo(gatewayUrl)));
  const port = await freePort();
  const args = ['proxy', file, relay.url, '--port', String(port), '--host', '127.0.0.1'];
  const child = spawn(process.execPath, [toolPath('prism'), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const close = async (): Promise<void> => {
    child.kill();
    await relay.close();
    await rm(folder, { recursive: true, force: true });
  };
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('Prism is listening')) {
      // Its log is not needed, but a full pipe would stop it.
      child.stdout.resume();
      return { url: `http://127.0.0.1:${port}`, close };
    }
    lines.push(line);
  }
  await close();
  throw new Error(`Prism did not start:\n${lines.join('\n')}`);
}

/** The document with HEAD beside each GET: the same answers, without their bodies. */
function withHead(document: ApiDocument): object {
  const paths: Record<string, object> = {};
  for (const [template, item] of Object.entries(document.paths)) {
    const responses: Record<string, object> = {};
    for (const [status, response] of Object.entries(item.get.responses)) {
      const name = response.$ref?.replace('#/components/responses/', '') ?? '';
      const { content: _content, ...bodyless } = document.components.responses[name] ?? response;
      responses[status] = bodyless;
    }
    paths[template] = { ...item, head: { ...item.get, operationId: `${item.get.operationId}Head`, responses } };
  }
  return { ...document, paths };
}

/**
 * Passes everything on as it is, except for the media type of answers to HEAD: Prism parses what is declared as JSON,
 * and fails on an empty body.
 */
function relayTo(gatewayUrl: string): RequestListener {
  const { hostname, port } = new URL(gatewayUrl);
  return ({ method, url: path, rawHeaders }, response) => {
    const sent = request({ hostname, port, method, path, headers: rawHeaders }, (answer) => {
      const { 'content-type': type, ...others } = answer.headers;
      const headers = method === 'HEAD' || type === undefined ? others : { ...others, 'content-type': type };
      response.writeHead(answer.statusCode ?? 502, headers);
      answer.pipe(response);
    });
    sent.on('error', () => response.destroy());
    sent.end();
  };
}
