import { createHash } from 'node:crypto'
import { signBody } from '../../src/provider/signature.js'
import type { SignedHeaders } from '../../src/store/events.js'
import { SECRET } from '../sample/signing.js'
import type { Cell, Row } from './customer-rows.js'

/** Stands in every id of the template's customer where another customer's key will stand. */
export const TEMPLATE_KEY = 'template-key'

/**
 * The cells of the same row for any customer's key, in the order of its columns.
 * @param offset how many events are stored before this customer's
 */
export type FillRow = (key: string, offset: number) => Cell[]

export function fillRow(row: Row): FillRow {
  const cells = Object.values(row).map(fillCell)
  return (key) => cells.map((fill) => fill(key))
}

/** The number of an event, at the beginning of its array in a source's history. */
const NUMBER = /(?<=^\[\[|\],\[)\d+(?=,")/g

/** Another customer's events have other numbers. */
export function fillSource(row: Row): FillRow {
  const historyAt = Object.keys(row).indexOf('history')
  const fill = fillRow(row)
  return (key, offset) => {
    const cells = fill(key, offset)
    cells[historyAt] = String(cells[historyAt]).replace(NUMBER, (number) => String(Number(number) + offset))
    return cells
  }
}

/** The same, whatever numbers its events have. */
export function withoutNumbers(row: Row): Row {
  return row.history === undefined ? row : { ...row, history: String(row.history).replace(NUMBER, '') }
}

/** Another customer's body has another hash and another signature. */
export function fillEvent(row: Row): FillRow {
  const { event, timestamp } = JSON.parse(String(row.headers)) as SignedHeaders
  const columns = Object.keys(row)
  const bodyAt = columns.indexOf('body')
  const hashAt = columns.indexOf('body_sha256')
  const headersAt = columns.indexOf('headers')
  const fill = fillRow({ ...row, body: String(row.body) })
  return (key, offset) => {
    const cells = fill(key, offset)
    const body = Buffer.from(String(cells[bodyAt]))
    const headers: SignedHeaders = { event, timestamp, signature: signBody(SECRET, timestamp, body) }
    cells[bodyAt] = body
    cells[hashAt] = createHash('sha256').update(body).digest('hex')
    cells[headersAt] = JSON.stringify(headers)
    return cells
  }
}

function fillCell(cell: Cell): (key: string) => Cell {
  if (typeof cell !== 'string' || !cell.includes(TEMPLATE_KEY)) return () => cell
  const parts = cell.split(TEMPLATE_KEY)
  return (key) => parts.join(key)
}
