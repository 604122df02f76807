/** Thousands of connections that send a request a byte at a time: nobody else notices, and they are closed. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { Fleet } from '../support/fleet.ts';
import { count, ms, p99, prove } from './bar.ts';

test('slow clients', async (context) => {
  const [sockets, perSecond, addedMs, closedWithinMs] = [2000, 100, 20, 15_000];
  const fleet = await forTest(Fleet.start({ isProbed: true }));
  const [load, slow] = [await fleet.load(), await fleet.load()];
  const paths = Array.from({ length: 10 }, (_, index) => `/v2/calls/warm_${index}`);
  const targets = fleet.targets(paths, await fleet.first.issueKey());
  await load.run(targets, { perSecond, forMs: 1500 });
  const before = await load.run(targets, { perSecond, forMs: 10_000 });
  fleet.first.forgetPeaks();
  await load.begin(targets, perSecond);
  const closed = await slow.slowloris(fleet.first.publicUrl, sockets);
  const during = await load.end();
  const { heldCpuMs } = fleet.first.hold();
  const longestMs = Math.max(...closed.map(({ afterMs }) => afterMs));
  const answered = during.filter(({ status }) => status === 200).length;
  prove(context, {
    name: 'slow clients',
    bar: `${count(sockets)} connections that send a byte a second, and ${perSecond} requests/s: p99 of these at most ${ms(addedMs)} more than without; slow ones closed within ${ms(closedWithinMs)}`,
    measured: `p99 ${p99(before).toFixed(1)} ms without, ${p99(during).toFixed(1)} ms with them; ${count(answered)} of ${count(during.length)} answered 200; ${count(closed.length)} closed after ${ms(longestMs)} at most, ${count(closed.filter(({ status }) => status === 400).length)} of them with a 400; event loop held ${ms(heldCpuMs)} of its CPU at most`,
    ok:
      p99(during) - p99(before) <= addedMs &&
      answered === during.length &&
      closed.length === sockets &&
      longestMs <= closedWithinMs,
  });
});

test('a client that takes nothing of its answer', async (context) => {
  const fleet = await forTest(Fleet.start());
  const { hostname, port } = new URL(fleet.first.publicUrl);
  const asset = '/docs/swagger-ui-bundle.js';
  const bytes = (await (await fetch(fleet.first.publicUrl + asset)).arrayBuffer()).byteLength;
  /** 30 s, the time that the answer takes at 10 bytes per millisecond, and 5 s to notice. */
  const allowedMs = 30_000 + bytes / 10 + 5000;
  const beganMs = performance.now();
  // More than the system takes on both sides.
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined).pause();
  socket.write(`GET ${asset} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(20));
  const isOpen = async (): Promise<boolean> => (await fleet.first.metric('evalgate_http_connections', 'public')) > 0;
  while ((await isOpen()) && performance.now() - beganMs < 2 * allowedMs) await sleep(500);
  const tookMs = performance.now() - beganMs;
  prove(context, {
    name: 'a client that takes nothing of its answer',
    bar: `loses its connection within ${ms(allowedMs)}, and keeps it for 30 s`,
    measured: ms(tookMs),
    ok: tookMs >= 30_000 && tookMs <= allowedMs,
  });
});
