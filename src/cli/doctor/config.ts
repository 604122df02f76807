/** Looks at the configuration. */
import { MIN_TOKEN_LENGTH } from '../../config/cross-checks.ts';
import { ConfigError } from '../../config/errors.ts';
import { loadConfig, type LoadedConfig } from '../../config/load.ts';
import { type Check, fail, ok, warn } from './check.ts';

/** The configuration, where it can be used, and what there is to say about it. */
export function checkConfig(env: Readonly<Record<string, string | undefined>>): {
  readonly loaded: LoadedConfig | null;
  readonly checks: readonly Check[];
} {
  try {
    const loaded = loadConfig({ env });
    const from = (origin: string): number => loaded.resolved.filter((entry) => entry.origin === origin).length;
    const message = `${loaded.file}; values other than defaults: ${from('file')} from the file, ${from('environment')} from the environment`;
    return { loaded, checks: [ok('config', message), ...warningsIn(loaded), ...weakTokens(loaded)] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      loaded: null,
      checks: [fail('config', error.message, 'Put right what is listed; docs/configuration.md lists all settings.')],
    };
  }
}

/** Weak tokens are reported by themselves, on any listener. */
function warningsIn({ warnings }: LoadedConfig): readonly Check[] {
  return warnings
    .filter((message) => !message.startsWith('ADMIN_TOKEN: '))
    .map((message) => warn('config', message, 'Change it, unless it is meant.'));
}

function weakTokens({ config }: LoadedConfig): readonly Check[] {
  const weak = config.admin.tokens.filter(({ token }) => token.length < MIN_TOKEN_LENGTH).map(({ name }) => name);
  if (weak.length === 0) return [];
  const message = `admin tokens of fewer than ${MIN_TOKEN_LENGTH} characters can be guessed: ${weak.join(', ')}`;
  return [warn('config', message, 'Make new ones: openssl rand -base64 24')];
}
