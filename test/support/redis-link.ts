import type { RedisLink } from '../../src/redis/connection.ts';

/** Resolves once the link is up; at once where it is. */
export async function linkUp(link: RedisLink): Promise<void> {
  if (link.isUp()) return;
  await new Promise<void>((resolve) => {
    const end = link.onUp(() => {
      end();
      resolve();
    });
  });
}

/** Resolves once the link is down; at once where it is. */
export async function linkDown(link: RedisLink): Promise<void> {
  if (!link.isUp()) return;
  await new Promise<void>((resolve) => {
    const end = link.onDown(() => {
      end();
      resolve();
    });
  });
}
