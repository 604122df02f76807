/** Runs the command line of this process: what the launcher loads, from the build or from the sources. */
const args = process.argv.slice(2);
if (args.length === 1 && args[0] === 'health') {
  // A health check runs every few seconds, and loads nothing of the other commands.
  const { findLiveness } = await import('./liveness.ts');
  const { isLive, text } = await findLiveness(process.env);
  process[isLive ? 'stdout' : 'stderr'].write(`${text}\n`);
  process.exitCode = isLive ? 0 : 1;
} else {
  const { main } = await import('./main.ts');
  await main(args);
  // A gateway has stopped: what still waits, such as a collector of spans that hangs, holds the process no longer.
  if (args[0] === 'serve' && !process.exitCode) process.exit();
}
