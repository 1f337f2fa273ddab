import { describe, expect, it } from 'vitest'
import { MAX_IMPORT_LINES } from '../../src/handlers/body.js'
import type { ImportRules } from '../../src/history/import.js'
import { apiKey, bearer, openFront } from './daemon-front.js'

/** A front that takes every line, and what it was asked to take. */
async function importingFront() {
  const asked: { readonly lines: readonly string[]; readonly rules: ImportRules & { dryRun: boolean } }[] = []
  const front = await openFront({
    apiKeys: () => [apiKey('ops', { scopes: ['admin'], environments: ['live', 'sandbox'] })],
    importLines: async (lines, rules) => {
      asked.push({ lines, rules })
      return lines.map((line) =>
        line === 'bad'
          ? { outcome: 'refused', reason: 'line_invalid', detail: 'is not JSON' }
          : { outcome: 'applied' },
      )
    },
  })
  const post = async (body: string, { query = '' } = {}) => {
    const headers = { ...bearer('ops'), 'content-type': 'application/x-ndjson' }
    const answer = await fetch(`${front.url}/imports${query}`, { method: 'POST', headers, body })
    return { status: answer.status, ...((await answer.json()) as Record<string, unknown>) }
  }
  return { asked, post }
}

describe('POST /imports', () => {
  it('takes lines, and answers what became of each', async () => {
    const { asked, post } = await importingFront()
    expect(await post('one\nbad')).toEqual({
      status: 200,
      results: [
        { outcome: 'applied' },
        { outcome: 'refused', reason: 'line_invalid', detail: 'is not JSON' },
      ],
    })
    const rules = { environments: ['live', 'sandbox'], withManual: false, dryRun: false }
    expect(asked).toEqual([{ lines: ['one', 'bad'], rules }])
  })

  it('passes on what the query asks for', async () => {
    const { asked, post } = await importingFront()
    await post('one\n', { query: '?dryRun=true&withManual=true&environment=sandbox' })
    const rules = { environments: ['sandbox'], withManual: true, dryRun: true }
    expect(asked).toEqual([{ lines: ['one'], rules }])
  })

  it('takes nothing with a flag that is none', async () => {
    const { asked, post } = await importingFront()
    expect(await post('one', { query: '?dryRun=yes' })).toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
    expect(asked).toEqual([])
  })

  it('takes no more lines than it can check at once', async () => {
    const { asked, post } = await importingFront()
    expect(await post('one\n'.repeat(MAX_IMPORT_LINES))).toMatchObject({ status: 200 })
    expect(await post('one\n'.repeat(MAX_IMPORT_LINES + 1))).toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
    expect(asked).toHaveLength(1)
  })
})
