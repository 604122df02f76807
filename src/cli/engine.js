/*
 * How V8 and Node.js are to work for this program; to be loaded before all the rest of it. Compiled code that was kept is
 * used only where the same flags are in force: whoever compiles ahead, as the image does, loads this too.
 */
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

// What is cached is bounded; let what the collector leaves lying about beside it be so too. Collecting more often costs
// little: what lives long is hardly more than the cache. While there is room it grows further, see heap-room.ts. The
// young generation's size, and the mode in which V8 keeps to that figure also where the heap is small, can only be set on
// the command line, as `npm start` and the container do.
setFlagsFromString('--heap-growing-percent=15');
// Code is optimised in one step instead of two. The one between took 15 MB for its work, which malloc then kept; without
// it a cached read costs no more, and rather less.
setFlagsFromString('--no-maglev');
// V8 allocates in the old generation what it once saw live long, by where in the code it is made, and does not take that
// back: some requests at once at the start, and from then on all that a request leaves behind was kept until the next
// full collection, of which there were ten a second. A cached read cost twice as much.
setFlagsFromString('--no-allocation-site-pretenuring');
// Eight seconds after a full collection V8 makes two more, to give memory back. There is hardly any to give, see above, and
// each makes it forget what it knows of objects of which none are left just then, such as those of requests: what it had
// optimised for them is thrown away, and a cached read costs a tenth more for some tenths of a second.
setFlagsFromString('--no-memory-reducer');
// Where there is one core, the collector's other threads only take turns with the one that answers: four are woken some
// thirty times a second, for a pause that is a quarter shorter without them.
if (availableParallelism() === 1) setFlagsFromString('--no-parallel-scavenge');
// Whoever imports node:http has Node read all that it exports, and three of those names are of a client for WebSockets
// that is loaded when they are read: 763 kB of source and 3 MB of memory for what nobody here uses.
const http = process.getBuiltinModule('node:http');
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name);
