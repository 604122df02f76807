/**
 * One of the servers that the gateway is measured against, on a free loopback port. They all answer with the same bytes.
 * Usage: node serve.js KIND, with a JSON object in OPTIONS: {bodyFile, originUrl, token, redisUrl, keys, workspaceIds, limit}. Prints {"port": N}.
 */
import { readFileSync } from 'node:fs';
import { Agent, createServer, get } from 'node:http';
import apicache from 'apicache';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import Fastify from 'fastify';
import fastifyRateLimit from '@fastify/rate-limit';
import { Redis } from 'ioredis';
import Koa from 'koa';
import { LRUCache } from 'lru-cache';
import { RedisStore } from 'rate-limit-redis';
import { fastifyFull } from './fastify-full.js';

const MANY = 1_000_000_000;
const options = JSON.parse(process.env.OPTIONS ?? '{}');
const { bodyFile, originUrl, token, redisUrl, keys = [], workspaceIds = [], limit = MANY } = options;
const body = bodyFile === undefined ? Buffer.alloc(0) : readFileSync(bodyFile);
const known = new Set(keys);

const KINDS = {
  /** The floor: nothing but the answer. Also the origin of those that cache. */
  'node-http': async () =>
    createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length });
      response.end(body);
    }),
  /** Each call of the public API as one to the store, with nothing kept: the floor of a miss. */
  forwarder: async () => {
    const agent = new Agent({ keepAlive: true });
    const headers = { authorization: `Bearer ${token}` };
    return createServer((request, response) => {
      const url = originUrl + request.url.replace('/v2/calls/', '/internal/v1/evaluations/');
      get(url, { agent, headers }, (answer) => {
        response.writeHead(answer.statusCode, { 'content-type': 'application/json; charset=utf-8' });
        answer.pipe(response);
      });
    });
  },
  koa: async () => {
    const app = new Koa();
    app.use((ctx) => {
      ctx.status = 200;
      ctx.type = 'json';
      ctx.body = body;
    });
    return createServer(app.callback());
  },
  /** Key check, one window in Redis, cached answer. */
  express: async () => {
    const redis = new Redis(redisUrl);
    const app = express();
    app.use((request, response, next) => {
      if (known.has(bearerOf(request.headers))) next();
      else response.status(401).json({ error: 'unknown key' });
    });
    app.use(
      rateLimit({
        windowMs: 60_000,
        limit,
        standardHeaders: 'draft-8',
        keyGenerator: (request) => bearerOf(request.headers),
        store: new RedisStore({ sendCommand: (command, ...args) => redis.call(command, ...args) }),
      }),
    );
    app.get(/.*/, apicache.middleware('1 hour'), async (request, response) => {
      const answer = await fetch(originUrl + request.url);
      response.type('json').send(await answer.text());
    });
    return createServer(app);
  },
  /** The same. */
  fastify: async () => {
    const app = Fastify();
    const cached = new LRUCache({ max: 10_000 });
    app.addHook('onRequest', async (request, reply) => {
      if (!known.has(bearerOf(request.headers))) return reply.code(401).send({ error: 'unknown key' });
    });
    await app.register(fastifyRateLimit, {
      max: limit,
      timeWindow: 60_000,
      redis: new Redis(redisUrl),
      keyGenerator: (request) => bearerOf(request.headers),
    });
    app.get('*', async (request, reply) => {
      let bytes = cached.get(request.url);
      if (bytes === undefined) {
        const answer = await fetch(originUrl + request.url);
        bytes = Buffer.from(await answer.arrayBuffer());
        cached.set(request.url, bytes);
      }
      reply.type('application/json; charset=utf-8');
      return bytes;
    });
    return listening(app);
  },
  'fastify-full': async () => listening(fastifyFull({ originUrl, redisUrl, keys, workspaceIds, limit })),
};

/** As a server of Node listens. */
async function listening(app) {
  await app.ready();
  return {
    listen: async (port, host, done) => done(await app.listen({ port, host })),
    address: () => app.server.address(),
  };
}

function bearerOf(headers) {
  return (headers.authorization ?? '').slice('Bearer '.length);
}

const make = KINDS[process.argv[2]];
if (make === undefined) throw new Error(`There is no ${process.argv[2]}; there are ${Object.keys(KINDS).join(', ')}`);
const server = await make();
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`));
