/** A quarter of an hour of everything at once. Its length can be set: SOAK_MINUTES=5. */
import { type Soaked, soak, type SoakOptions } from '../../support/soak/run.ts';
import { count, ms, percentile, type Row, type Scale } from '../row.ts';

const MINUTES = Number(process.env['SOAK_MINUTES'] ?? '15');
/** What is left of noise in the floors of resident memory over a quarter of an hour. */
const MOST_GROWTH_PER_HOUR_MB = 40;
const MOST_LAG_SECONDS = 0.1;
/** The least of the time in which nothing may fail. */
const LEAST_CALM_SHARE = 0.3;
const MB = 1_000_000;

const WHOLE: SoakOptions = {
  forMs: MINUTES * 60_000,
  perSecond: 60,
  seed: 6,
  holdMs: [2000, 8000],
  calmMs: [6000, 14_000],
};
const SHORT: SoakOptions = { forMs: 9000, perSecond: 40, seed: 6, holdMs: [300, 600], calmMs: [300, 400] };

export async function run(scale: Scale): Promise<readonly Row[]> {
  const isWhole = scale === 'whole';
  const options = isWhole ? WHOLE : SHORT;
  const soaked = await soak(options);
  const minutes = Math.round(options.forMs / 6000) / 10;
  return [requests(soaked, minutes, isWhole), secrets(soaked), health(soaked, isWhole)];
}

function requests(soaked: Soaked, minutes: number, isWhole: boolean): Row {
  const { unexplained, faults, calmShare, statuses, longestMs } = soaked;
  const kinds = [...faults].map(([name, times]) => `${name} ${times}`).join(', ');
  const told = [...statuses].toSorted(([a], [b]) => a - b).map(([status, times]) => `${status}: ${count(times)}`);
  const first = unexplained
    .slice(0, 3)
    .map(({ what, gateway, fromMs }) => `${what} (gateway ${gateway}, began ${new Date(fromMs).toISOString()})`);
  return {
    name: 'soak, requests',
    bar: `${minutes} minutes of mixed load on a gateway and one with WORKERS=2, faults at random: no failed request that none of them explains, at least ${percent(LEAST_CALM_SHARE)} of the time with nothing to explain any`,
    measured: `${count(soaked.requests)} requests (${told.join(', ')}), ${soaked.failed} failed, ${unexplained.length} unexplained${first.length === 0 ? '' : `: ${first.join('; ')}`}; longest ${ms(longestMs)}; calm ${percent(calmShare)}; ${kinds}`,
    ok: unexplained.length === 0 && (!isWhole || calmShare >= LEAST_CALM_SHARE),
  };
}

function secrets({ foundSecrets, searched }: Soaked): Row {
  return {
    name: 'soak, secrets',
    bar: 'API keys, admin and store tokens and query strings in no log, metric, error or anywhere in Redis; contents of records in no log, metric or error',
    measured: `${count(searched)} texts searched: ${foundSecrets.length === 0 ? 'none found' : foundSecrets.join('; ')}`,
    ok: foundSecrets.length === 0 && searched > 100,
  };
}

function health({ meanBytes, bytesPerHour, lagsSeconds }: Soaked, isWhole: boolean): Row {
  const lag = percentile(lagsSeconds, 0.5);
  return {
    name: 'soak, memory and event loop',
    bar: `after the first third: resident memory grows by at most ${MOST_GROWTH_PER_HOUR_MB} MB an hour (line through its floors), the event loop's p99 lag is ${ms(1000 * MOST_LAG_SECONDS)} at most (median of all looks)`,
    measured: `${(bytesPerHour / MB).toFixed(1)} MB an hour at ${(meanBytes / MB).toFixed(0)} MB; lag ${ms(1000 * lag)}, at most ${ms(1000 * percentile(lagsSeconds, 1))}`,
    // Over some seconds there is no trend.
    ok: !isWhole || (bytesPerHour <= MOST_GROWTH_PER_HOUR_MB * MB && lag <= MOST_LAG_SECONDS),
  };
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
