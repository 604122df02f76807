/**
 * Counters and histograms for what happens with every request. prom-client's own make a text of the labels each time,
 * check and sort them; here a cell is kept by who counts in it, and labels are only looked at when somebody scrapes. What
 * is scraped is the same.
 */
import { Counter, type CounterConfiguration, Histogram, type HistogramConfiguration } from 'prom-client';

type Labels<L extends string> = Readonly<Record<L, string>>;

/** What has the same labels. */
export class Cell<L extends string> {
  readonly labels: Labels<L>;
  count = 0;

  constructor(labels: Labels<L>) {
    this.labels = labels;
  }

  add(): void {
    this.count += 1;
  }
}

/** A counter of cells. `inc` of the counter itself is not to be used beside them. */
export class CellCounter<L extends string> {
  readonly #cells: Cell<L>[] = [];
  /** What the registry knows of it. */
  readonly scraped: Counter<L>;

  constructor(configuration: CounterConfiguration<L>) {
    const cells = this.#cells;
    this.scraped = new Counter<L>({
      ...configuration,
      collect() {
        this.reset();
        for (const { labels, count } of cells) this.inc(labels, count);
      },
    });
  }

  /** A new one: not to be asked for twice with the same labels. */
  cell(labels: Labels<L>): Cell<L> {
    const cell = new Cell(labels);
    this.#cells.push(cell);
    return cell;
  }
}

/** Observations with the same labels. */
export class Observed<L extends string> {
  readonly labels: Labels<L>;
  /** Observations at most as large as the bound of that place, and larger than the one before; one more for the rest. */
  readonly counts: Float64Array;
  readonly #bounds: readonly number[];
  sum = 0;

  constructor(labels: Labels<L>, bounds: readonly number[]) {
    this.labels = labels;
    this.counts = new Float64Array(bounds.length + 1);
    this.#bounds = bounds;
  }

  observe(value: number): void {
    let place = 0;
    while (place < this.#bounds.length && value > (this.#bounds[place] ?? Infinity)) place += 1;
    this.counts[place] = (this.counts[place] ?? 0) + 1;
    this.sum += value;
  }
}

/** A histogram of cells. */
export class CellHistogram<L extends string> {
  readonly #cells: Observed<L>[] = [];
  readonly #bounds: readonly number[];
  /** What the registry knows of it. */
  readonly scraped: Histogram<L>;

  /** `buckets` are the upper bounds, ascending. */
  constructor(configuration: HistogramConfiguration<L> & { readonly buckets: readonly number[] }) {
    this.#bounds = configuration.buckets;
    this.scraped = new Scraped({ ...configuration, buckets: [...configuration.buckets] }, this.#cells);
  }

  /** A new one: not to be asked for twice with the same labels. */
  cell(labels: Labels<L>): Observed<L> {
    const observed = new Observed(labels, this.#bounds);
    this.#cells.push(observed);
    return observed;
  }
}

type Scrape<L extends string> = Awaited<ReturnType<Histogram<L>['get']>>;

class Scraped<L extends string> extends Histogram<L> {
  readonly #cells: readonly Observed<L>[];
  readonly #bounds: readonly number[];
  readonly #name: string;
  /** One without observations, for all that is to be said besides. */
  readonly #empty: Histogram<L>;

  constructor(configuration: HistogramConfiguration<L>, cells: readonly Observed<L>[]) {
    super(configuration);
    this.#cells = cells;
    this.#bounds = configuration.buckets ?? [];
    this.#name = configuration.name;
    this.#empty = new Histogram<L>({ ...configuration, registers: [] });
  }

  override async get(): Promise<Scrape<L>> {
    const empty = await this.#empty.get();
    return { ...empty, values: this.#cells.flatMap((observed) => this.#values(observed)) };
  }

  /** What the registry asks for instead, where there is one, to write text. */
  getForPromString(): Promise<Scrape<L>> {
    return this.get();
  }

  /** Buckets hold all that is at most their bound. */
  #values({ labels, counts, sum }: Observed<L>): Scrape<L>['values'] {
    const name = this.#name;
    let total = 0;
    const buckets = [...this.#bounds, '+Inf'].map((le, place) => {
      total += counts[place] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: total },
    ];
  }
}

/** Makes each value once, and finds it again by what it was made from, compared by identity. */
export function made1<A, V>(make: (a: A) => V): (a: A) => V {
  const made = new Map<A, V>();
  return (a) => {
    const known = made.get(a);
    if (known !== undefined) return known;
    const value = make(a);
    made.set(a, value);
    return value;
  };
}

/** The same by two things. */
export function made2<A, B, V>(make: (a: A, b: B) => V): (a: A, b: B) => V {
  const byA = made1((a: A) => made1((b: B) => make(a, b)));
  return (a, b) => byA(a)(b);
}
