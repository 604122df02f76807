/**
 * Counters and histograms for what happens with every request. prom-client's own make a text of the labels each time,
 * check and sort them; here a cell is found by one text that its caller has at hand, and labels are only looked at when
 * somebody scrapes. What is scraped is the same.
 */
import { Counter, type CounterConfiguration, Histogram, type HistogramConfiguration } from 'prom-client';

type Labels<L extends string> = Readonly<Record<L, string>>;

/** A counter of cells. `inc` of the counter itself is not to be used beside them. */
export class CellCounter<L extends string> {
  readonly #cells = new Map<string, { readonly labels: Labels<L>; count: number }>();
  /** What the registry knows of it. */
  readonly scraped: Counter<L>;

  constructor(configuration: CounterConfiguration<L>) {
    const cells = this.#cells;
    this.scraped = new Counter<L>({
      ...configuration,
      collect() {
        this.reset();
        for (const { labels, count } of cells.values()) this.inc(labels, count);
      },
    });
  }

  /** `cell` names the labels: the same text for the same labels, another one for others. */
  add(cell: string, labels: () => Labels<L>): void {
    const known = this.#cells.get(cell);
    if (known === undefined) this.#cells.set(cell, { labels: labels(), count: 1 });
    else known.count += 1;
  }
}

interface Observed<L extends string> {
  readonly labels: Labels<L>;
  /** Observations at most as large as the bound of that place, and larger than the one before; one more for the rest. */
  readonly counts: Float64Array;
  sum: number;
}

/** A histogram of cells. */
export class CellHistogram<L extends string> {
  readonly #cells = new Map<string, Observed<L>>();
  readonly #bounds: readonly number[];
  /** What the registry knows of it. */
  readonly scraped: Histogram<L>;

  /** `buckets` are the upper bounds, ascending. */
  constructor(configuration: HistogramConfiguration<L> & { readonly buckets: readonly number[] }) {
    this.#bounds = configuration.buckets;
    this.scraped = new Scraped({ ...configuration, buckets: [...configuration.buckets] }, this.#cells);
  }

  observe(cell: string, value: number, labels: () => Labels<L>): void {
    const observed = this.#cells.get(cell) ?? this.#begin(cell, labels());
    let place = 0;
    while (place < this.#bounds.length && value > (this.#bounds[place] ?? Infinity)) place += 1;
    observed.counts[place] = (observed.counts[place] ?? 0) + 1;
    observed.sum += value;
  }

  #begin(cell: string, labels: Labels<L>): Observed<L> {
    const observed = { labels, counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
    this.#cells.set(cell, observed);
    return observed;
  }
}

type Scrape<L extends string> = Awaited<ReturnType<Histogram<L>['get']>>;

class Scraped<L extends string> extends Histogram<L> {
  readonly #cells: ReadonlyMap<string, Observed<L>>;
  readonly #bounds: readonly number[];
  readonly #name: string;
  /** One without observations, for all that is to be said besides. */
  readonly #empty: Histogram<L>;

  constructor(configuration: HistogramConfiguration<L>, cells: ReadonlyMap<string, Observed<L>>) {
    super(configuration);
    this.#cells = cells;
    this.#bounds = configuration.buckets ?? [];
    this.#name = configuration.name;
    this.#empty = new Histogram<L>({ ...configuration, registers: [] });
  }

  override async get(): Promise<Scrape<L>> {
    const empty = await this.#empty.get();
    return { ...empty, values: [...this.#cells.values()].flatMap((observed) => this.#values(observed)) };
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
