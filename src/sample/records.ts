/** The records that a store serves: one table per resource, of whatever is in it, valid or not. */

/** A record as it goes over the wire, with whatever members. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Records by id. A record that is missing can be made when it is read. */
export class RecordTable extends Map<string, unknown> {
  /** Makes the record of an id that is not in the table; undefined where there is none. */
  make: (id: string) => unknown = () => undefined;

  override get(id: string): unknown {
    return super.get(id) ?? this.make(id);
  }
}

export interface StoreRecords {
  readonly evaluations: RecordTable;
  /** These three by the id of their evaluation. */
  readonly transcripts: RecordTable;
  readonly scoredCards: RecordTable;
  readonly dealInsights: RecordTable;
  /** Scorecards with their rubrics. */
  readonly scorecards: RecordTable;
  /** By the lower-case hex SHA-256 of the key. */
  readonly apiKeys: RecordTable;
}

/** Empty tables, to be filled. */
export function createRecords(): StoreRecords {
  return {
    evaluations: new RecordTable(),
    transcripts: new RecordTable(),
    scoredCards: new RecordTable(),
    dealInsights: new RecordTable(),
    scorecards: new RecordTable(),
    apiKeys: new RecordTable(),
  };
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
