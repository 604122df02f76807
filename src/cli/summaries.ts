/** All commands, in the order of the help, which loads none of them. */
export const SUMMARIES = {
  serve: 'run the gateway',
  'sample-upstream': 'run the bundled sample store by itself',
  keys: 'create, list and end API keys',
  state: 'back up keys, times set by operators, maintenance and the audit',
  cache: 'show statistics, set times, purge, maintenance',
  changes: 'show the changes of the store, as they come',
  fleet: 'list the gateway processes that serve together',
  whoami: 'show the name under which the audit records your changes, and the role of your token',
  health: 'exit with 0 if the gateway with this configuration is live, for health checks',
  doctor: 'check the configuration, Redis, the store, the clocks and a running gateway',
  sync: 'keep a copy of all calls that a key sees',
  transcript: 'show how a transcript is read: its form, turns and speakers',
  openapi: "print the OpenAPI 3.1 document of the public API or the admin listener, or the store's JSON Schema",
} as const;

export type CommandName = keyof typeof SUMMARIES;
