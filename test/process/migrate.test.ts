import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { migrate, pendingMigrations } from '../../src/store/migrate.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { latchkey, runProgram } from '../setup/program.js'
import { configuredFolder, serve } from './served.js'

const NAMES = MIGRATIONS.map(({ name }) => name)
const OLDER = MIGRATIONS.slice(0, 3)

function migrateIn(folder: string) {
  return runProgram(latchkey('migrate', '--json'), { folder })
}

it('makes no database where there is none', async () => {
  const folder = configuredFolder()
  const { code, stdout, stderr } = await migrateIn(folder)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(JSON.parse(stderr).error).toMatchObject({
    code: 'store_missing',
    message: `There is no database at ${join(folder, 'data', 'latchkey.db')}.`,
  })
  expect(readdirSync(folder)).toEqual(['config.json'])
})

it('runs the steps that an older schema lacks, keeps it as it was beside it, and is done the next time', async () => {
  const folder = configuredFolder()
  const file = join(folder, 'data', 'older.db')
  const older = openDatabase(file, { readOnly: false })
  await migrate(older, OLDER)
  await older.destroy()

  const env = { LATCHKEY_DATABASE_URL: `sqlite:${file}` }
  const { code, stdout } = await runProgram(latchkey('migrate', '--json'), { folder, env })
  const backup = `${file}.before-${NAMES[OLDER.length]}`
  expect({ code, said: JSON.parse(stdout) }).toEqual({
    code: 0,
    said: { steps: NAMES.slice(OLDER.length), backup },
  })
  const kept = openDatabase(backup, { readOnly: true })
  expect(await pendingMigrations(kept)).toEqual(NAMES.slice(OLDER.length))
  await kept.destroy()

  const again = await runProgram(latchkey('migrate'), { folder, env })
  expect(again).toMatchObject({ code: 0, stdout: 'the schema is up to date\n', stderr: '' })
})

it('leaves a database alone that a daemon serves', async () => {
  const folder = configuredFolder()
  await serve(folder)
  const { code, stdout, stderr } = await migrateIn(folder)
  expect({ code, stdout, error: JSON.parse(stderr).error.code }).toEqual({
    code: 1,
    stdout: '',
    error: 'store_in_use',
  })
})
