/**
 * Node's HTTP, as all other files import it. `import ... from 'node:http'` makes Node read everything that the module exports,
 * and three of those names load its fetch and WebSocket: 40 ms of each start, and 14 MB. Nothing here uses them.
 */
export const { Agent, createServer, get, request, STATUS_CODES } = process.getBuiltinModule('node:http');
