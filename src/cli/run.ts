/** Runs the command line of this process: what the launcher loads, from the build or from the sources. */
import { main } from './main.ts';

const args = process.argv.slice(2);
await main(args);
// A gateway has stopped: what still waits, such as a collector of spans that hangs, holds the process no longer.
if (args[0] === 'serve' && !process.exitCode) process.exit();
