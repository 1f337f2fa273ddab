import pg from 'pg'
import type { Row } from '../engine.js'

/** One value of each row, as the array that PostgreSQL reads without parsing; null: every value is null. */
export interface Column {
  /** Of the array. */
  readonly type: 'text[]' | 'bigint[]' | 'bytea[]'
  readonly array: Buffer
}

/** The rows by column, each of which has values of one type. */
export function columnsOf(rows: readonly Row[]): readonly (Column | null)[] {
  return (rows[0] ?? []).map((_, i) => columnOf(rows.map((row) => row[i] ?? null)))
}

const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const INTEGER_BYTES = 8
const NULL_LENGTH = -1
const TWO_TO_32 = 2 ** 32

/** In the binary form of `array_send`: a third of the work of text, in which each quote of a JSON text is escaped. */
function columnOf(values: readonly Row[number][]): Column | null {
  const some = values.find((value) => value !== null)
  if (some === undefined) return null
  const { type, oid } = TYPES[typeof some as keyof typeof TYPES]
  const cleaned = values.map(withoutNul)
  const lengths = cleaned.map(lengthOf)
  const total = lengths.reduce<number>(
    (sum, length) => sum + LENGTH_BYTES + Math.max(length, 0),
    HEADER_BYTES,
  )
  const array = Buffer.allocUnsafe(total)
  // One dimension, maybe with nulls, of this type, so long, from index 1.
  let at = 0
  for (const word of [1, 1, oid, values.length, 1]) at = array.writeInt32BE(word, at)
  for (const [i, value] of cleaned.entries()) {
    const length = lengths[i] ?? NULL_LENGTH
    at = array.writeInt32BE(length, at)
    if (typeof value === 'string') at += array.write(value, at)
    else if (typeof value === 'number') {
      array.writeInt32BE(Math.floor(value / TWO_TO_32), at)
      at = array.writeUInt32BE(value >>> 0, at + LENGTH_BYTES)
    } else if (value !== null) at += value.copy(array, at)
  }
  return { type, array }
}

const { TEXT, INT8, BYTEA } = pg.types.builtins
const TYPES = {
  string: { type: 'text[]', oid: TEXT },
  number: { type: 'bigint[]', oid: INT8 },
  object: { type: 'bytea[]', oid: BYTEA },
} as const

function lengthOf(value: Row[number]): number {
  if (value === null) return NULL_LENGTH
  return typeof value === 'number' ? INTEGER_BYTES : Buffer.byteLength(value)
}

/** A text of PostgreSQL cannot hold a NUL, which no id has, but a detail of a customer may. */
export function withoutNul<Value>(value: Value): Value | string {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value
}
