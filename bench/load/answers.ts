const HEAD_END = '\r\n\r\n'
const STATUS_AT = 'HTTP/1.1 '.length
const CONTENT_LENGTH = /content-length: (\d+)/i

/**
 * Reads the answers of one connection, one at a time: takes each chunk as it comes, and returns the status once
 * the whole answer is there, else null. Throws where an answer does not tell its length.
 */
export function createAnswerReader(): (chunk: Buffer) => number | null {
  let pending: Buffer | null = null

  return (chunk) => {
    const bytes: Buffer = pending === null ? chunk : Buffer.concat([pending, chunk])
    const headEnd = bytes.indexOf(HEAD_END)
    const isWhole = headEnd !== -1 && bytes.length >= headEnd + HEAD_END.length + bodyLength(bytes, headEnd)
    pending = isWhole ? null : bytes
    return isWhole ? Number(bytes.toString('latin1', STATUS_AT, STATUS_AT + 3)) : null
  }
}

function bodyLength(bytes: Buffer, headEnd: number): number {
  const length = CONTENT_LENGTH.exec(bytes.toString('latin1', 0, headEnd))?.[1]
  if (length === undefined) throw new Error('An answer came without Content-Length.')
  return Number(length)
}
