/**
 * Faults that can be put into the source, one at a time, to see that simulated fleets find them: `npm run simulate -- --seeds
 * 2000 --fault NAME`. Each is a text of a file of src, and what takes its place while it is loaded.
 */
import { registerHooks } from 'node:module';

export interface Mutation {
  readonly about: string;
  readonly edits: readonly Edit[];
}

export interface Edit {
  /** Below `src`. */
  readonly file: string;
  /** Stands there once. */
  readonly text: string;
  readonly instead: string;
}

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'lease-unchecked': {
    about: 'a process completes whatever has become of its lease',
    edits: [
      {
        file: 'cache/redis/call-scripts.ts',
        text: `if redis.call('GET', KEYS[1]) ~= args.token then return '{"status":"lost"}' end`,
        instead: '',
      },
    ],
  },
  'purges-read-late': {
    about: 'a copy has the position of the journal after its fetch, not before it',
    edits: [
      {
        file: 'cache/store-call.ts',
        text: 'stamp: { ...stamp, receivedAtMs: clock.nowMs() }',
        instead: 'stamp: { ...stamp, position: purges.position, receivedAtMs: clock.nowMs() }',
      },
    ],
  },
  'position-stays': {
    about: 'the position in the journal is not advanced by its events',
    edits: [
      {
        file: 'journal/redis-journal.ts',
        text: 'this.#position = { history: this.#position.history, sequence: entry.sequence, word: entry.word };',
        instead: '',
      },
    ],
  },
  'foreign-filed': {
    about: 'an answer of another workspace is filed and served as any other',
    edits: [
      {
        file: 'cache/store-call.ts',
        text: "const isFound = stored.entry.answer.kind === 'found' && !isForeign;",
        instead: "const isFound = stored.entry.answer.kind === 'found';",
      },
    ],
  },
  'wrong-clock': {
    about: "the windows of a quota are counted by the gateway's clock",
    edits: [
      {
        file: 'quota/redis-limiter.ts',
        text: '`${COMMON}\nlocal function consume(',
        instead:
          "`${COMMON}\nnow = tonumber(ARGV[#ARGV])\nnowEntry = string.format('%.0f', now)\nlocal function consume(",
      },
      {
        file: 'quota/redis-limiter.ts',
        text: 'args: batches.flatMap(({ waiters, limits }) => [waiters.length, limits.perMinute, limits.perHour]),',
        instead:
          'args: [...batches.flatMap(({ waiters, limits }) => [waiters.length, limits.perMinute, limits.perHour]), 1000 * this.#clock.nowMs()],',
      },
    ],
  },
  'follower-sleeps': {
    about: 'who waits for the call of another process is not woken by its end',
    edits: [
      {
        file: 'cache/redis/flight-channel.ts',
        text: 'hasEnded = true;\n      wake?.();',
        instead: 'hasEnded = true;',
      },
    ],
  },
  'old-history-kept': {
    about: 'copies stay good when Redis has lost events',
    edits: [
      {
        file: 'cache/purge-log.ts',
        text: "if (position.history !== this.#history) return 'hard';",
        instead: 'if (position.history !== this.#history) return null;',
      },
    ],
  },
  'revocation-missed': {
    about: 'a key that is revoked while its request waits still gets the answer',
    edits: [
      {
        file: 'keys/authenticate.ts',
        text: 'renew({ hash }: ApiKey, address: () => string): AuthResult | Promise<AuthResult> {',
        instead:
          "renew(key: ApiKey, address: () => string): AuthResult | Promise<AuthResult> {\n    if (key.status === 'active') return { kind: 'active', key };\n    const { hash } = key;",
      },
    ],
  },
  'announced-again': {
    about: 'an announcement that the store repeats is made again',
    edits: [
      {
        file: 'changes/redis-feed.ts',
        text: 'if before then return position(before) end',
        instead: '',
      },
    ],
  },
  'change-unheard': {
    about: 'what the store announces is in the feed, and no process goes by it',
    edits: [
      {
        file: 'cache/purge-log.ts',
        text: "journal.on('changes', (event, { sequence }) => this.changeTable.apply(event, sequence));",
        instead: '',
      },
    ],
  },
};

/** Puts a fault into what is loaded from now on. Throws for one that is not known. */
export function mutate(name: string): void {
  const mutation = MUTATIONS[name];
  if (mutation === undefined)
    throw new RangeError(`${name} is no fault; there are ${Object.keys(MUTATIONS).join(', ')}`);
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      const edits = mutation.edits.filter(({ file }) => url.endsWith(`/src/${file}`));
      const { source } = loaded;
      if (edits.length === 0 || source === undefined || source === null) return loaded;
      const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
      return { ...loaded, source: edits.reduce(edited, text) };
    },
  });
}

/** Throws unless the text stands in the source, once. */
export function edited(source: string, { file, text, instead }: Edit): string {
  const [before = '', after, ...more] = source.split(text);
  if (after === undefined || more.length > 0) throw new Error(`${file} does not hold once: ${text}`);
  return before + instead + after;
}
