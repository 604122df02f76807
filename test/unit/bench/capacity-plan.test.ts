import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  asPrinted,
  type Coefficients,
  coefficientsTable,
  figures,
  readCoefficients,
} from '../../bench/capacity-coefficients.ts';
import { planTables } from '../../bench/capacity-plan-tables.ts';
import {
  breaksAt,
  loadOf,
  populationOf,
  reached,
  requestsOfACall,
  stateBytes,
  whatIfMessages,
} from '../../bench/capacity-plan.ts';

const PAGE = readFileSync(new URL('../../../docs/capacity.md', import.meta.url), 'utf8');

/** Round ones, so that the sums can be done by hand. */
function roundFigures(changes: Partial<Coefficients> = {}): Coefficients {
  return { ...asPrinted(readCoefficients(PAGE)), ...changes };
}

function lineOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

describe('the page', () => {
  test('every line of its plan is worked out from its coefficients', () => {
    const lines = planTables(readCoefficients(PAGE)).flatMap((table) => [table.title, ...table.lines.map(lineOf)]);
    for (const line of lines) expect(PAGE).toContain(line);
  });

  test('its coefficients are read as they are printed', () => {
    const coefficients = readCoefficients(PAGE);
    for (const cells of coefficientsTable(coefficients).lines) expect(PAGE).toContain(lineOf(cells));
    expect(asPrinted(coefficients)).toEqual(coefficients);
  });

  test('one without a coefficient is refused', () => {
    expect(() => readCoefficients(PAGE.replace('| `quotaKey` |', '| `other` |'))).toThrow(
      'there is no figure for quotaKey',
    );
  });
});

test('what is printed has three figures, and nothing is below zero', () => {
  expect([12.345, 0.012_345, 1234.5, 98_765, 3].map(figures)).toEqual(['12.3', '0.0123', '1,230', '98,800', '3']);
  expect(asPrinted(roundFigures({ quotaKey: 12.345, busNode: -0.5 }))).toMatchObject({ quotaKey: 12.3, busNode: 0 });
});

describe('processes that see something', () => {
  test('one read is seen by one, many by all', () => {
    expect(reached(4, 1)).toBeCloseTo(1, 10);
    expect(reached(4, 2)).toBeCloseTo(1.75, 10);
    expect(reached(500, 1e6)).toBeCloseTo(500, 6);
  });

  test('they are never more than there are, nor more than the reads', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 1, max: 5000 }), (processes, reads) => {
        const found = reached(processes, reads);
        expect(found).toBeLessThanOrEqual(Math.min(processes, reads) + 1e-9);
        expect(found).toBeGreaterThanOrEqual(1 - 1e-9);
      }),
    );
  });
});

describe('messages for what-if curves', () => {
  test('a process that is alone sends none, and few processes send each of the others one a round', () => {
    expect(whatIfMessages(1, 2000)).toBe(0);
    expect(whatIfMessages(2, 2000)).toBeCloseTo(2 * 4, 6);
    expect(whatIfMessages(4, 2000)).toBeCloseTo(4 * 4 * 3, 6);
  });

  test('with more reads than fit, rounds come sooner', () => {
    expect(whatIfMessages(4, 8192)).toBeCloseTo(4 * 16 * 3, 6);
  });

  test('they grow by the square of the processes, until each read of another key is a message of its own', () => {
    expect(whatIfMessages(40, 2000) / whatIfMessages(4, 2000)).toBeCloseTo((40 * 39) / (4 * 3), 2);
    expect(whatIfMessages(100_000, 2000) / (100_000 * 2000)).toBeCloseTo(1, 2);
  });
});

describe('a load', () => {
  const scenario = { rate: 8000, perProcess: 2000, balancing: 'any', stateNodes: 1 } as const;

  test('has the population that the default limit allows', () => {
    expect(populationOf(8000)).toEqual({ keys: 9600, lists: 1200, evaluations: 9600, transcripts: 1200 });
  });

  test('calls the store once for each list in its freshness, and once for each transcript in its', () => {
    // 1,200 ÷ (30 + 1,200 ÷ 5,600) + 1,200 ÷ (3,600 + 1,200 ÷ 800)
    expect(loadOf(roundFigures(), scenario).fills).toBeCloseTo(39.716_312 + 0.333_194, 5);
  });

  test('reads from Redis what another process has filled', () => {
    // Each of 4 reads every list within 30 s (one has filled it), every evaluation within 5 min, transcripts within 1 h.
    const expected = 40 * 3 + 32 * 4 + (1200 / 3600) * 3;
    expect(loadOf(roundFigures(), scenario).redisHits).toBeCloseTo(expected, 2);
    expect(loadOf(roundFigures(), { ...scenario, perProcess: 8000 }).redisHits).toBeCloseTo(32, 2);
  });

  test('balanced by key, a process sees its keys alone, and the answers of eight times as many', () => {
    const spread = { rate: 800_000, perProcess: 8000 } as const;
    const any = loadOf(roundFigures(), { ...spread, balancing: 'any', stateNodes: 1 });
    const byKey = loadOf(roundFigures(), { ...spread, balancing: 'key', stateNodes: 1 });
    expect(any.keysOfAProcess).toBeCloseTo(960_000, 6);
    expect(byKey.keysOfAProcess).toBeCloseTo(9600, 6);
    expect(byKey.lookups).toBeCloseTo(960_000 / 30, 6);
    expect(any.lookups).toBeGreaterThan(0.98 * 800_000);
    expect(byKey.workingSetBytes / any.workingSetBytes).toBeCloseTo(reached(100, 8) / 100, 10);
  });

  test('adds up what a request, a read from Redis, a fill and a process cost the gateways', () => {
    const c = roundFigures({
      gatewayRequest: 50,
      gatewayCall: 100,
      keysOfCall: 2,
      gatewayHit: 0,
      gatewayFill: 0,
      gatewayHear: 0,
      gatewayIdle: 10_000,
      gatewayMember: 1,
    });
    // 8,000 × (50 µs + 100 µs ÷ 2) + 4 × (10 ms + 4 ÷ 2 × 1 µs)
    expect(loadOf(c, scenario).gatewayCores).toBeCloseTo(0.8 + 0.040_008, 9);
  });

  test('divides calls for rate limits by the requests that go together', () => {
    const c = roundFigures({ quotaCall: 20, quotaKey: 10, keysOfCall: 4, keysOfClusterCall: 1 });
    expect(loadOf(c, scenario).state.quotas).toBeCloseTo((8000 * (20 / 4 + 10)) / 1e6, 10);
    expect(loadOf(c, { ...scenario, stateNodes: 3 }).state.quotas).toBeCloseTo((8000 * 30) / 1e6, 10);
  });

  test('takes more requests in one call where a process is busier, between what was measured', () => {
    const c = roundFigures({ keysOfCall: 2, keysOfBusyCall: 6, keysOfClusterCall: 1.5 });
    const at = (perProcess: number): number => requestsOfACall(c, { ...scenario, perProcess });
    expect([500, 2000, 4000, 6000, 20_000].map(at)).toEqual([2, 2, 4, 6, 6]);
    expect(requestsOfACall(c, { ...scenario, stateNodes: 3 })).toBe(1.5);
  });

  test('in a Cluster spreads rate limits over sixteen nodes at most, and tells each node of every message', () => {
    const c = roundFigures({ quotaCall: 0, quotaKey: 10, publish: 8, deliver: 2, busNode: 1, stateIdle: 0, beat: 0 });
    const alone = { ...c, beatMember: 0, keyLookup: 0, keyUse: 0 };
    const { whatIfMessages: messages } = loadOf(alone, scenario);
    const busiest = (stateNodes: number): number => loadOf(alone, { ...scenario, stateNodes }).state.busiest;
    expect(busiest(1)).toBeCloseTo((8000 * 10 + messages * 10) / 1e6, 10);
    expect(busiest(32)).toBeCloseTo((8000 * 10) / 1e6 / 16 + (messages * (10 + 31)) / 1e6 / 32, 10);
  });

  test('keeps an hour of requests', () => {
    const c = roundFigures({ logEntryBytes: 10, logBytes: 100, keyBytes: 700 });
    expect(stateBytes(c, 8000)).toBe(8000 * 3600 * 10 + 9600 * 800);
  });
});

test('where something ends is found to a thousandth, and that it never does too', () => {
  expect(breaksAt((rate) => rate / 123_456)).toBeCloseTo(123_456, -3);
  expect(breaksAt((rate) => (rate / 50_000) ** 2)).toBeCloseTo(50_000, -2);
  expect(breaksAt(() => 0.5)).toBeNull();
});
