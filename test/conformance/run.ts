/**
 * `npm run conformance`: tools that know only the OpenAPI document use a gateway in front of the sample store. Prism
 * validates requests and answers as a proxy, and HTTP caches of clients and shared ones keep answers. Exit status 1 if anything departs from the document. Its first run installs the tools into their own folder; they are no dependencies of the project.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkCaches } from './caches.ts';
import { checkWithPrism } from './prism.ts';
import { checkSharedCaches } from './shared-caches.ts';
import { type Check, openWorld, TOOLS } from './world.ts';

if (!existsSync(join(TOOLS, 'node_modules/.package-lock.json'))) {
  process.stderr.write('installing Prism and the HTTP caches ...\n');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: TOOLS, stdio: ['ignore', 'ignore', 'inherit'] });
}
const world = await openWorld();
try {
  // The clients' caches first: they need a record that nobody has read before.
  const checks = [...(await checkCaches(world)), ...(await checkSharedCaches(world)), ...(await checkWithPrism(world))];
  for (const { name, measured, faults } of checks) {
    process.stdout.write(`${faults.length === 0 ? 'ok    ' : 'FAILED'}  ${name}: ${measured}\n`);
    for (const fault of faults) process.stdout.write(`        ${fault}\n`);
  }
  const failed = checks.filter(({ faults }: Check) => faults.length > 0).length;
  process.stdout.write(`${checks.length - failed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  await world.gateway.stop();
}
