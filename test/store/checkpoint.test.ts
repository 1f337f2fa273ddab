import { statSync } from 'node:fs'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { startCheckpoints } from '../../src/store/checkpoint.js'
import { open, temporaryFile } from './temporary-store.js'

const PAGES_A_TRANSACTION = 200
const FRAME_BYTES = 4_096 + 24

describe('checkpoints beside the commits', () => {
  it('let the log begin anew, though the writer has no pause to hear from the thread', async () => {
    const file = temporaryFile()
    const db = open(file)
    const checkpoints = await startCheckpoints(db, file)
    await sql`create table filling (content blob)`.execute(db)
    let longest = 0
    for (let written = 0; written < 60_000; written += PAGES_A_TRANSACTION) {
      await sql`insert into filling select zeroblob(4000) from (
        with recursive n(i) as (select 1 union all select i + 1 from n where i < ${PAGES_A_TRANSACTION})
        select i from n)`.execute(db)
      longest = Math.max(longest, statSync(`${file}-wal`).size)
      await checkpoints.look()
    }
    const { rows } = await sql<{ rows: number }>`select count(*) as rows from filling`.execute(db)
    expect(rows).toEqual([{ rows: 60_000 }])
    expect(longest).toBeLessThan(21_000 * FRAME_BYTES)
    await checkpoints.close()
  })
})
