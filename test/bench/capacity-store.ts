/**
 * The store behind the gateways whose capacity is measured, in a process of its own: it has every workspace, answers at
 * once, and counts. A workspace's list changes every five minutes, each at another moment. GET /counts tells what it was
 * asked so far. Usage: node capacity-store.ts. Prints {"port": N, "token": "..."}.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { anEvaluation, aTranscript } from '../support/records.ts';
import { sendError } from '../support/store-server.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { callId, CALLS_OF_A_WORKSPACE, workspaceId } from './capacity-mix.ts';

const TOKEN = 'store-token-for-capacity';
const CHANGES_EVERY_MS = 300_000;
const TRANSCRIPT_LINES = 120;
const CREATED_AT_MS = 1_772_600_767_089;
const LINE = 'Riley Ortega: Thanks for joining, let us go through what you have in mind for the next quarter.\n';

const counts = { calls: 0, notModified: 0, bytes: 0 };

/** Changes with the workspace's list. */
function versionOf(workspace: number): number {
  return Math.floor((Date.now() + ((workspace * 7919) % CHANGES_EVERY_MS)) / CHANGES_EVERY_MS);
}

function evaluation(workspace: number, call: number) {
  return anEvaluation({
    _id: callId(workspace, call),
    workspaceId: workspaceId(workspace),
    title: `Discovery call ${call} with Northwind, ${versionOf(workspace)}`,
    createdAtMs: CREATED_AT_MS + call,
  });
}

function listOf(workspace: number) {
  const items = Array.from({ length: CALLS_OF_A_WORKSPACE }, (_, call) => evaluation(workspace, call)).toReversed();
  return { items, total: items.length };
}

function answerTo(request: IncomingMessage): { readonly value: unknown; readonly workspace: number } | null {
  const url = new URL(request.url ?? '/', 'http://store.invalid');
  const inQuery = url.searchParams.get('workspaceId');
  if (inQuery !== null) {
    const workspace = Number.parseInt(inQuery.slice(0, 8), 16);
    return { value: listOf(workspace), workspace };
  }
  const [, first, second, part] = /\/evaluations\/ev_(\d+)_(\d+)(\/transcript)?$/.exec(url.pathname) ?? [];
  if (first === undefined || second === undefined) return null;
  const [workspace, call] = [Number(first), Number(second)];
  if (part === undefined) return { value: evaluation(workspace, call), workspace };
  const about = { evaluationId: callId(workspace, call), workspaceId: workspaceId(workspace) };
  return { value: aTranscript({ ...about, body: LINE.repeat(TRANSCRIPT_LINES) }), workspace };
}

function handle(request: IncomingMessage, response: ServerResponse): void {
  if (request.url === '/counts') {
    response.end(JSON.stringify(counts));
    return;
  }
  counts.calls += 1;
  const answer = answerTo(request);
  if (answer === null) {
    sendError(response, 404, 'NOT_FOUND');
    return;
  }
  const etag = `"${versionOf(answer.workspace)}"`;
  if (request.headers['if-none-match'] === etag) {
    counts.notModified += 1;
    response.writeHead(304, { etag }).end();
    return;
  }
  const body = JSON.stringify(answer.value);
  counts.bytes += Buffer.byteLength(body);
  response.writeHead(200, { 'content-type': 'application/json', etag }).end(body);
}

const server = createServer(handle);
server.keepAliveTimeout = 60_000;
const { port } = await listenOnLoopback(server);
process.stdout.write(`${JSON.stringify({ port, token: TOKEN })}\n`);
