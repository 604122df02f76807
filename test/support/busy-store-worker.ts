/** A store of limited strength, in a process of its own: it has every evaluation, and suffers from too many requests. */
import { createServer, type ServerResponse } from 'node:http';
import { type BusyCommand, busyCommandSchema, type Seen, strengthSchema } from './busy-store-commands.ts';
import { listenOnLoopback } from './loopback.ts';
import { anEvaluation } from './records.ts';
import { answerCalls } from './worker-calls.ts';

const REFUSES_BEYOND = 4;

const { serviceMs, bears } = strengthSchema.parse(JSON.parse(process.argv[2] ?? ''));
let isFailing = false;
let inFlight = 0;
let mostInFlight = 0;
let arrivedAtMs: number[] = [];

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', etag: '"1"' }).end(JSON.stringify(body));
}

const server = createServer((request, response) => {
  arrivedAtMs.push(performance.timeOrigin + performance.now());
  if (isFailing) {
    send(response, 503, { code: 'UNAVAILABLE', message: 'The store is down.' });
    return;
  }
  inFlight += 1;
  mostInFlight = Math.max(mostInFlight, inFlight);
  response.on('close', () => {
    inFlight -= 1;
  });
  if (inFlight > REFUSES_BEYOND * bears) {
    send(response, 503, { code: 'UNAVAILABLE', message: 'The store is busy.' });
    return;
  }
  const id = request.url?.split('/').at(-1) ?? '';
  const tookMs = serviceMs * Math.max(1, (inFlight / bears) ** 2);
  setTimeout(() => send(response, 200, anEvaluation({ _id: id })), tookMs);
});
server.keepAliveTimeout = 60_000;
const { url } = await listenOnLoopback(server);

function answer(command: BusyCommand): string | Seen | null {
  if (command.name === 'fail') {
    isFailing = command.isFailing;
    return null;
  }
  const seen = { arrivedAtMs, mostInFlight };
  arrivedAtMs = [];
  mostInFlight = inFlight;
  return seen;
}

answerCalls((command) => Promise.resolve(command === 'url' ? url : answer(busyCommandSchema.parse(command))));
