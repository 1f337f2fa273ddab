import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { loadCustomers, saveCustomers } from '../../../src/store/customers.js'
import { engineOf } from '../../../src/store/engine.js'
import { forgetPerson } from '../../../src/store/erasures.js'
import { compactFile } from '../../../src/store/sqlite/store.js'
import { withoutGaps } from '../../setup/bytes-in-use.js'
import { migratedFile, open } from '../temporary-store.js'

const PEOPLE = Array.from({ length: 500 }, (_, n) => n)

/** Strewn over all keys, so that the rows of others come between theirs, and have them move to other pages. */
const idOf = (n: number): string => `cus_${(n * 2_654_435_761) % 2 ** 32}`
const emailOf = (n: number): string => `person-${n}-of-many@example.com`

it('who is forgotten is at most in bytes that no row uses, until the file is compacted', async () => {
  const file = await migratedFile()
  const db = open(file)

  async function tell(n: number, name: string): Promise<void> {
    const told = (value: string) => ({ value, at: 0, by: 'evt_1' })
    const facts = { email: told(emailOf(n)), name: told(name) }
    await db.transaction().execute(async (trx) => {
      const stored = await loadCustomers(trx, 'live', [idOf(n)])
      await saveCustomers(trx, 'live', stored, [{ customerId: idOf(n), facts, deletedAt: null }])
    })
  }
  const whoIsIn = (bytes: Buffer) => PEOPLE.filter((n) => bytes.includes(`"${emailOf(n)}"`))

  for (const n of PEOPLE) {
    await tell(n, '')
    // A row that grows has others move.
    if (n % 2 === 0) await tell(n / 2, 'x'.repeat(n % 300))
  }
  for (const n of PEOPLE) await db.transaction().execute((trx) => forgetPerson(trx, 'live', idOf(n)))
  await engineOf(db).emptyLog(db)
  const left = readFileSync(file)
  // Else this shows nothing.
  expect(whoIsIn(left).length).toBeGreaterThan(0)
  expect(whoIsIn(withoutGaps(left))).toEqual([])
  await db.destroy()
  await compactFile(file)
  expect(whoIsIn(readFileSync(file))).toEqual([])
})
