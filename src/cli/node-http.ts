/**
 * Node's HTTP for commands that only ask a gateway, such as a health check every ten seconds. `import ... from 'node:http'`
 * makes Node read everything that the module exports, and three of those names load its fetch and WebSocket: half of such a
 * command's time. A gateway loads them anyway, through its libraries.
 */
export const { Agent, get, request } = process.getBuiltinModule('node:http');
