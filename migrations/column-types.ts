import type { RawBuilder } from 'kysely'
import type { Migration } from 'kysely/migration'

/** How one database writes what the tables are made of; a migration names only what it needs. */
export interface ColumnTypes {
  /** Whether several processes write there, also at a time. */
  readonly isShared: boolean
  /** Ids, words and JSON. Equal only if every character is. */
  readonly text: RawBuilder<unknown>
  /** Counts, instants in epoch milliseconds, and booleans as 0 and 1. */
  readonly integer: RawBuilder<unknown>
  readonly bytes: RawBuilder<unknown>
  /** A primary key that the database hands out, rising, and never twice. */
  readonly sequence: RawBuilder<unknown>
  /** The same, but that of a row that was deleted may be handed out again: costs nothing to hand out. */
  readonly rowNumber: RawBuilder<unknown>
  /** Ends every `create table`. */
  readonly tableOptions: RawBuilder<unknown>
  /**
   * Ends that of a table of short rows that seldom change: they are kept in the order of their key. (Rows that
   * change soon after they were made are better kept in the order of making: many of them share a page.)
   */
  readonly keyedTableOptions: RawBuilder<unknown>
}

/** One step of the schema. Once released, its name and what it does never change. */
export interface NamedMigration {
  /** Begins with its number: steps run in the order of their names. */
  readonly name: string
  readonly create: (types: ColumnTypes) => Migration
}
