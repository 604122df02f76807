/** The actions on gateways and their store in a history of the cache's model test, and the most important orders. */
import * as fc from 'fast-check';

/** Who reads: a tenant of workspace A, one of B, and one of both. */
export type Tenant = 0 | 1 | 2;
/** The first or the second evaluation. */
export type Which = 0 | 1;

export type Action =
  | { readonly do: 'read'; readonly tenant: Tenant; readonly of: Which | 'list'; readonly gateway: number }
  | { readonly do: 'change' | 'move' | 'delete'; readonly of: Which }
  | { readonly do: 'hold' | 'release' | 'fail' | 'recover' }
  | { readonly do: 'send'; readonly place: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'times'; readonly class: 'evaluation' | 'list'; readonly fresh: string }
  | { readonly do: 'purge'; readonly what: PurgeOf; readonly mode: 'soft' | 'hard'; readonly gateway: number };

const PURGES = ['all', 'class:evaluation', 'class:list', 'first evaluation', 'workspace A', 'workspace B'] as const;
export type PurgeOf = (typeof PURGES)[number];

const which = fc.constantFrom<Which>(0, 1);
const gateway = fc.nat({ max: 1 });
const only = <T extends string>(does: T): fc.Arbitrary<T> => fc.constant(does);

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 16,
    arbitrary: fc.record({
      do: only('read'),
      tenant: fc.constantFrom<Tenant>(0, 0, 1, 2),
      of: fc.constantFrom<Which | 'list'>(0, 0, 1, 'list'),
      gateway,
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('change', 'change', 'move', 'delete'), of: which }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('hold', 'hold', 'release', 'release', 'fail', 'recover') }) },
  { weight: 3, arbitrary: fc.record({ do: only('send'), place: fc.nat({ max: 3 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: only('advance'),
      ms: fc.constantFrom(1, 1100, 14_000, 31_000, 290_000, 400_000, 4_000_000, 80_000_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: only('times'),
      class: fc.constantFrom('evaluation', 'list'),
      fresh: fc.constantFrom('0s', '10s', '1h'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: only('purge'),
      what: fc.constantFrom(...PURGES),
      mode: fc.constantFrom('hard', 'hard', 'soft'),
      gateway,
    }),
  },
);

/** A record is read, and changes before the answer arrives; a purge or some time comes between, and other readers. */
const overtaken: fc.Arbitrary<readonly Action[]> = fc
  .record({
    of: which,
    tenant: fc.constantFrom<Tenant>(0, 1, 2),
    seen: fc.constantFrom<Which | 'list'>(0, 1, 'list'),
    change: fc.constantFrom('change', 'change', 'move', 'delete'),
    between: fc.oneof(
      fc.record({ do: only('purge'), what: fc.constantFrom(...PURGES), mode: only('hard'), gateway }),
      fc.record({ do: only('advance'), ms: fc.constantFrom(3000, 20_000, 280_000) }),
    ),
    isReadBetween: fc.boolean(),
    places: fc.tuple(gateway, gateway, gateway),
  })
  .map(({ of, tenant, seen, change, between, isReadBetween, places }) => {
    const [first, second, third] = places.map((place): Action => ({
      do: 'read',
      tenant,
      of: seen === 'list' ? seen : of,
      gateway: place,
    }));
    const among = isReadBetween ? [second] : [];
    const all = [{ do: 'hold' }, first, { do: change, of }, between, ...among, { do: 'release' }, third] as const;
    return all.filter((each) => each !== undefined);
  });

/** A record is read, and again after some time in which the store has begun to fail. */
const aged: fc.Arbitrary<readonly Action[]> = fc
  .record({
    of: fc.constantFrom<Which | 'list'>(0, 1, 'list'),
    tenant: fc.constantFrom<Tenant>(0, 1, 2),
    ms: fc.constantFrom(31_000, 290_000, 4_000_000, 80_000_000, 100_000_000),
    places: fc.tuple(gateway, gateway),
  })
  .map(({ of, tenant, ms, places: [first, second] }) => {
    const read = { do: 'read', of, tenant } as const;
    return [
      { ...read, gateway: first },
      { do: 'fail' },
      { do: 'advance', ms },
      { ...read, gateway: second },
      { do: 'recover' },
    ];
  });

export const history: fc.Arbitrary<readonly Action[]> = fc
  .array(
    fc.oneof(
      { weight: 12, arbitrary: action.map((each) => [each]) },
      { weight: 2, arbitrary: overtaken },
      { weight: 1, arbitrary: aged },
    ),
    { minLength: 3, maxLength: 18 },
  )
  .map((scenes) => scenes.flat());
