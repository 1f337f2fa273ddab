/* What the pages of an SQLite database hold. */

const PAGE = 4_096
/** Before the first page of a write-ahead log, and before each. */
const LOG_HEADER = 32
const FRAME_HEADER = 24
/** The database's own, in its first page. */
const FILE_HEADER = 100
/** The kinds of pages of trees, and how long their headers are. The others begin with a page's number, and so with 0. */
const HEADERS: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 }

/** The file without the bytes that no row uses, between the list of a page's rows and the first of them. */
export function withoutGaps(file: Buffer): Buffer {
  const used = Buffer.from(file)
  for (let at = 0; at < used.length; at += PAGE) clearGap(used.subarray(at, at + PAGE), at === 0)
  return used
}

/** The same of a write-ahead log. */
export function withoutGapsInLog(log: Buffer): Buffer {
  const used = Buffer.from(log)
  for (let at = LOG_HEADER; at < used.length; at += FRAME_HEADER + PAGE) {
    const page = at + FRAME_HEADER
    clearGap(used.subarray(page, page + PAGE), used.readUInt32BE(at) === 1)
  }
  return used
}

function clearGap(page: Buffer, isFirst: boolean): void {
  const header = isFirst ? FILE_HEADER : 0
  const length = HEADERS[page[header] ?? 0]
  if (length === undefined) return
  const rows = page.readUInt16BE(header + 3)
  page.fill(0, header + length + 2 * rows, page.readUInt16BE(header + 5))
}
