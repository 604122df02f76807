/** Straight lines and planes through measured points, by least squares. Pure. */

/** `value` is taken to be the sum of the terms, each times a coefficient of its own. */
export interface Observation {
  readonly terms: readonly number[];
  readonly value: number;
}

export interface Fit {
  /** One a term, in their order. */
  readonly coefficients: readonly number[];
  /** How much of the spread of the values the terms explain: 1 for all of it. */
  readonly r2: number;
  /** Root of the mean square of what is left over, in percent of the mean of the values. */
  readonly errorPercent: number;
}

/** Throws RangeError for fewer points than terms, or terms that can't be told apart by them. */
export function fit(observations: readonly Observation[]): Fit {
  const width = observations[0]?.terms.length ?? 0;
  if (width === 0 || observations.length < width) {
    throw new RangeError(`${observations.length} points do not tell ${width} coefficients.`);
  }
  const coefficients = solve(normalEquations(observations, width));
  const values = observations.map(({ value }) => value);
  const mean = values.reduce(sum, 0) / values.length;
  const left = observations.map(({ terms, value }) => (value - combined(terms, coefficients)) ** 2).reduce(sum, 0);
  const spread = values.map((value) => (value - mean) ** 2).reduce(sum, 0);
  return {
    coefficients,
    r2: spread === 0 ? 1 : 1 - left / spread,
    errorPercent: mean === 0 ? 0 : (100 * Math.sqrt(left / values.length)) / Math.abs(mean),
  };
}

/** What the coefficients say of the terms. */
export function combined(terms: readonly number[], coefficients: readonly number[]): number {
  return terms.reduce((total, term, index) => total + term * (coefficients[index] ?? 0), 0);
}

/** Rows of the left side, each with its right side at the end. */
function normalEquations(observations: readonly Observation[], width: number): number[][] {
  const places = Array.from({ length: width }, (_, index) => index);
  const product = (of: (one: Observation) => number): number => observations.map(of).reduce(sum, 0);
  return places.map((row) => [
    ...places.map((column) => product(({ terms }) => (terms[row] ?? 0) * (terms[column] ?? 0))),
    product(({ terms, value }) => (terms[row] ?? 0) * value),
  ]);
}

/** Gauss and Jordan, with the largest pivot of each column. */
function solve(equations: readonly (readonly number[])[]): readonly number[] {
  const rows = equations.map((row) => [...row]);
  const scale = Math.max(...rows.flat().map(Math.abs));
  for (let column = 0; column < rows.length; column += 1) {
    const below = rows.slice(column);
    const pivot = below.reduce((best, row) => (size(row, column) > size(best, column) ? row : best), below[0] ?? []);
    if (size(pivot, column) <= scale * 1e-15) throw new RangeError('The points do not tell the terms apart.');
    const at = rows.indexOf(pivot);
    [rows[column], rows[at]] = [pivot, rows[column] ?? []];
    for (const row of rows) {
      if (row === pivot) continue;
      const factor = (row[column] ?? 0) / (pivot[column] ?? 1);
      for (let place = column; place < row.length; place += 1)
        row[place] = (row[place] ?? 0) - factor * (pivot[place] ?? 0);
    }
  }
  return rows.map((row, index) => (row.at(-1) ?? 0) / (row[index] ?? 1));
}

function size(row: readonly number[], column: number): number {
  return Math.abs(row[column] ?? 0);
}

function sum(a: number, b: number): number {
  return a + b;
}
