/** The resources that the gateway holds once nobody asks it for anything: descriptors, timers and memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Census } from '../../support/process.ts';
import { lookAt } from './watch.ts';
import type { SoakWorld } from './world.ts';

/** Until idle connections of clients and to the store are closed. */
const SETTLED_AFTER_MS = 25_000;
const LOOKS = 10;
const LOOK_EVERY_MS = 1000;

export interface Rest extends Census {
  readonly descriptors: number;
  readonly residentBytes: number;
}

/** Resolves after half a minute. The fewest descriptors count, because a look opens connections itself. */
export async function restOf(world: SoakWorld): Promise<Rest> {
  await sleep(SETTLED_AFTER_MS);
  let descriptors = Number.POSITIVE_INFINITY;
  for (let i = 0; i < LOOKS; i += 1) {
    descriptors = Math.min(descriptors, (await lookAt(world)).descriptors);
    await sleep(LOOK_EVERY_MS);
  }
  const census = await world.parts.single.census();
  return { ...census, descriptors, residentBytes: world.parts.single.memory().nowBytes };
}
