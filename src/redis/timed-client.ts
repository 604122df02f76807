/** A client of Redis that tells how long each command took, as its caller saw it: its wait for this process included. */
import { type Command, Redis } from 'ioredis';
import { TIMED_OUT } from './lean-command.ts';
import type { ConnectionOptions } from './options.ts';

/**
 * - `answered`: Redis did it
 * - `refused`: Redis answered with an error
 * - `timeout`: no answer in time
 * - `lost`: the connection ended before the answer
 * - `unsent`: there was no connection to send it on
 */
export type CommandOutcome = 'answered' | 'refused' | 'timeout' | 'lost' | 'unsent';

/** It is called for each command, so it must be cheap; and must not throw. */
export type CommandListener = (outcome: CommandOutcome, seconds: number) => void;

export interface TimedOptions {
  readonly onCommand: CommandListener;
  /** Whether what is sent while what has just arrived is worked through goes out in one write, once that is done. */
  readonly isGathering: boolean;
}

export class TimedRedis extends Redis {
  readonly #onCommand: CommandListener;
  readonly #isGathering: boolean;

  constructor(options: ConnectionOptions, { onCommand, isGathering }: TimedOptions) {
    super(options);
    this.#onCommand = onCommand;
    this.#isGathering = isGathering;
  }

  /** Every command passes here, those of scripts and pipelines too. */
  override sendCommand(command: Command, ...more: SendOptions): unknown {
    if (this.#isGathering) this.#gather();
    const sent = super.sendCommand(command, ...more);
    // The connection's own first commands go out before it is ready; what could not be sent is settled by now.
    if (command.isSettled) this.#onCommand('unsent', 0);
    else if (this.status === 'ready') timeCommand(command, this.#onCommand);
    return sent;
  }

  #gather(): void {
    const { stream } = this;
    if (this.status !== 'ready' || stream.writableCorked > 0) return;
    stream.cork();
    setImmediate(() => stream.uncork());
  }
}

type SendOptions = Parameters<Redis['sendCommand']> extends [Command, ...infer More] ? More : never;

/** Tells how a command that was sent just now ends. */
export function timeCommand(command: Command, onCommand: CommandListener): void {
  const startedAtMs = performance.now();
  const end = (outcome: CommandOutcome): void => onCommand(outcome, (performance.now() - startedAtMs) / 1000);
  command.promise.then(
    () => end('answered'),
    (error: unknown) => end(outcomeOf(error)),
  );
}

function outcomeOf(error: unknown): CommandOutcome {
  if (!(error instanceof Error)) return 'lost';
  if (error.name === 'ReplyError') {
    // How a script is sent the first time, and no fault of anybody's.
    return error.message.startsWith('NOSCRIPT') ? 'answered' : 'refused';
  }
  return error.message === TIMED_OUT ? 'timeout' : 'lost';
}
