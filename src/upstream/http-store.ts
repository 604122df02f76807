/** The store over HTTP. Nothing here retries, caches or counts: wrappers of the same interface do. */
import { systemClock, type Clock } from '../clock.ts';
import type { ApiKeyRecord } from '../domain/records.ts';
import { answerOf } from './answers.ts';
import { Deadline } from './deadline.ts';
import { listQuestion } from './list.ts';
import type { Question, StoreResource } from './question.ts';
import {
  apiKeyQuestion,
  dealInsightsQuestion,
  evaluationQuestion,
  rubricQuestion,
  scoredCardQuestion,
  transcriptQuestion,
} from './singles.ts';
import { StoreError, type EvaluationStore, type FetchOptions, type StoreAnswer, type StoreErrorKind } from './store.ts';
import { createTransport, type Transport, type TransportOptions } from './transport.ts';

/** One call that was sent, or that could not be. */
export interface StoreCall {
  readonly resource: StoreResource;
  readonly outcome: StoreAnswer<unknown>['kind'] | StoreErrorKind;
  /** The store's HTTP status; null where none came, or none in time. */
  readonly status: number | null;
  readonly durationMs: number;
  readonly requestId: string;
  /** For the log: why there is no answer, a StoreError's message. Null where there is one. */
  readonly failure: string | null;
}

/** A record of a list that was not served because it was not what was asked for, or not whole. */
export interface RecordLeftOut {
  readonly resource: StoreResource;
  /** Null where the record has no valid id. */
  readonly id: string | null;
  /** The faulty member: `evaluatee.email`. Never its value. */
  readonly path: string;
  readonly requestId: string;
}

/** They report, for logs and metrics, and must not throw. */
export interface HttpStoreHooks {
  readonly onCall?: (call: StoreCall) => void;
  readonly onRecordLeftOut?: (leftOut: RecordLeftOut) => void;
}

export interface HttpStoreOptions extends TransportOptions {
  /** One deadline for the whole exchange: waiting for a connection, connecting, headers and body. */
  readonly timeoutMs: number;
  readonly hooks?: HttpStoreHooks;
  readonly clock?: Clock;
}

/** Looks an API key up at the store, by the lower-case hex SHA-256 of the whole key. Rejects with a StoreError. */
export interface ApiKeySource {
  apiKey(hash: string, options: FetchOptions): Promise<StoreAnswer<ApiKeyRecord>>;
}

export interface HttpStore extends EvaluationStore, ApiKeySource {
  /** Ends the calls in flight with kind `aborted` and closes all connections; later calls are `aborted` too. */
  close(): Promise<void>;
}

/**
 * A client of the store at `baseUrl`. Its methods reject with a StoreError, or with a TypeError for an argument that
 * the caller should have refused (an id that is none, a list without workspaces); nothing is sent then.
 * Throws a TypeError where `baseUrl` cannot be a base address.
 */
export function createHttpStore(options: HttpStoreOptions): HttpStore {
  const client = new Client(options, createTransport(options));
  return {
    list: async (query, request) =>
      client.ask(
        listQuestion(query, ({ id, path }) => {
          options.hooks?.onRecordLeftOut?.({ resource: 'list', id, path, requestId: request.requestId });
        }),
        request,
      ),
    evaluation: async (id, request) => client.ask(evaluationQuestion(id), request),
    transcript: async (id, request) => client.ask(transcriptQuestion(id), request),
    scorecard: async (id, request) => client.ask(scoredCardQuestion(id), request),
    dealInsights: async (id, request) => client.ask(dealInsightsQuestion(id), request),
    rubric: async (id, request) => client.ask(rubricQuestion(id), request),
    apiKey: async (hash, request) => client.ask(apiKeyQuestion(hash), request),
    close: async () => {
      client.close();
    },
  };
}

/** Asks questions, each within its deadline, and reports how each went. */
class Client {
  readonly #options: HttpStoreOptions;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #inFlight = new Set<Deadline>();
  #isClosed = false;

  constructor(options: HttpStoreOptions, transport: Transport) {
    this.#options = options;
    this.#transport = transport;
    this.#clock = options.clock ?? systemClock;
  }

  async ask<T>(question: Question<T>, request: FetchOptions): Promise<StoreAnswer<T>> {
    if (request.isWanted?.() === false) throw new StoreError('aborted', 'nobody waits for the answer any more');
    const startedMicros = this.#clock.nowMicros();
    const report = (how: Pick<StoreCall, 'outcome' | 'status' | 'failure'>): void => {
      const durationMs = (this.#clock.nowMicros() - startedMicros) / 1000;
      const { resource } = question;
      this.#options.hooks?.onCall?.({ resource, ...how, durationMs, requestId: request.requestId });
    };
    const deadline = this.#startDeadline(request);
    try {
      const reply = await this.#transport.get(question.path, headersOf(request), deadline);
      const isConditional = request.ifNoneMatch !== undefined;
      const answer = await answerOf({ question, isConditional, nowMs: this.#clock.nowMs() }, reply);
      report({ outcome: answer.kind, status: reply.status, failure: null });
      return answer;
    } catch (error) {
      const failure = asStoreError(error);
      report({ outcome: failure.kind, status: failure.status, failure: failure.message });
      throw failure;
    } finally {
      deadline.clear();
      this.#inFlight.delete(deadline);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const deadline of this.#inFlight) deadline.abort();
    this.#transport.close();
  }

  #startDeadline(request: FetchOptions): Deadline {
    const { timeoutMs } = this.#options;
    const deadline = new Deadline(Math.min(timeoutMs, request.timeoutMs ?? timeoutMs));
    if (this.#isClosed) deadline.abort();
    this.#inFlight.add(deadline);
    return deadline;
  }
}

function headersOf(request: FetchOptions): Readonly<Record<string, string>> {
  return {
    'x-request-id': request.requestId,
    ...(request.traceparent === undefined ? {} : { traceparent: request.traceparent }),
    ...(request.ifNoneMatch === undefined ? {} : { 'if-none-match': request.ifNoneMatch }),
  };
}

/** Whatever else is thrown while an answer is read is a fault of the reader, brought on by that answer. */
function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError('garbled', 'the answer of the store could not be processed', { cause: error });
}
